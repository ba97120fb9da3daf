#include "experiments/plan/search.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "experiments/common/each.hpp"
#include "experiments/plan/estimates.hpp"
#include "experiments/plan/explained.hpp"
#include "experiments/plan/space.hpp"
#include "experiments/plan/ways_table.hpp"
#include "parallel/step/assemble.hpp"
#include "src/base/error.hpp"
#include "src/base/progress.hpp"

namespace chorale::plan {
namespace {

StepRequest request_for(const SearchRequest& search, const Found& found) {
  StepRequest request = search.step;
  request.plan.layout = found.layout;
  request.plan.options.batch.micro = found.micro_batch;
  request.plan.options.recompute = found.recompute;
  request.plan.options.memory.limit = 0;
  return request;
}

bool is_possible(const StepRequest& request) {
  const TrainingOptions& o = request.plan.options;
  const Layout& layout = request.plan.layout;
  return go_together(o, layout) && fits(layout, {.shape = o.shape,
                                                 .world = layout.ranks(),
                                                 .global_batch = o.batch.global,
                                                 .micro_batch = o.batch.micro,
                                                 .one_host = false});
}

double planned_bytes(const StepRequest& step) {
  const std::int64_t last = step.plan.layout.stages() - 1;
  const auto peak = [&](std::int64_t stage) { return static_cast<double>(plan_memory(step.plan, stage).peak_bytes); };
  return std::max(peak(0), last > 0 ? peak(last) : 0);
}

SearchResult search(const SearchRequest& request, Estimates& estimates, const Session& session) {
  SearchResult result;
  std::vector<Found> all = all_ways(request);
  Progress progress = session.progress("search", std::ssize(all));
  std::vector<Found> fit;
  for (std::size_t i = 0; i < all.size(); ++i) {
    progress.update(static_cast<std::int64_t>(i), to_string(all[i].layout));
    if (!is_possible(request_for(request, all[i]))) continue;
    ++result.considered;
    estimates.estimate(all[i]);
    if (all[i].bytes <= 1.05 * request.memory)
      fit.push_back(std::move(all[i]));
    else
      ++result.too_large;
  }
  std::ranges::stable_sort(fit, {}, &Found::estimate);
  std::map<std::array<std::int64_t, most_axes>, int> executed;  // number of executed ways for each division of the ranks
  double fastest = 0;                                           // the fastest estimate
  for (Found& found : fit) {
    if (result.best.size() >= request.executed && found.estimate > (1 + estimate_error) * fastest) break;
    if (executed[found.layout.sizes] == 3) continue;
    const StepRequest step = request_for(request, found);
    found.bytes = planned_bytes(step);
    if (found.bytes > request.memory) {
      ++result.too_large;
      continue;
    }
    progress.update(std::ssize(all), found.name());
    found.step = predict_step(step);
    ++executed[found.layout.sizes];
    if (result.best.empty()) fastest = found.estimate;
    result.best.push_back(std::move(found));
  }
  std::ranges::stable_sort(result.best, {}, [](const Found& f) { return f.step.seconds; });
  return result;
}

// Finds the fastest way to use this layout. Executes the ways that fit in memory and have the three fastest estimates. If no
// way fits, returns the way that needs the least memory.
Found fastest_way(const SearchRequest& request, Estimates& estimates, const Layout& layout) {
  std::vector<Found> ways = ways_of(layout, request);
  if (ways.empty()) ways.push_back({layout, std::max<std::int64_t>(1, request.micro_batch), Recompute::none});
  check(request_for(request, ways.front()).plan.options, layout);  // throws if the options do not allow the layout
  for (Found& way : ways) {
    estimates.estimate(way);
    way.bytes = planned_bytes(request_for(request, way));
  }
  std::ranges::stable_sort(ways, {}, &Found::estimate);
  std::vector<Found> best;
  for (const Found& way : ways)
    if (best.size() < 3 && way.bytes <= request.memory) best.push_back(way);
  if (best.empty()) best.push_back(*std::ranges::min_element(ways, {}, &Found::bytes));
  for (Found& way : best) way.step = predict_step(request_for(request, way));
  return *std::ranges::min_element(best, {}, [](const Found& f) { return f.step.seconds; });
}

// Returns why this way recomputes activations: with less recomputation, the model would not fit in memory. Returns "" if the
// model would fit, or if nothing is recomputed.
std::string why_recompute(const SearchRequest& request, const Found& way) {
  if (way.recompute == Recompute::none) return "";
  Found lesser = way;
  lesser.recompute = static_cast<Recompute>(static_cast<int>(way.recompute) - 1);
  double needed = planned_bytes(request_for(request, lesser));
  if (needed <= request.memory) return "";
  std::string with;  // smaller micro-batches
  if (way.micro_batch > 1 && request.micro_batch == 0) {
    lesser.micro_batch = 1;
    const double least = planned_bytes(request_for(request, lesser));
    with = least <= request.memory ? ", or smaller micro-batches" : " even with micro-batches of 1";
    if (least > request.memory) needed = least;
  }
  return fmt::format("recompute {}, because {} would need {} of {}{}", name_of(way.recompute), name_of(lesser.recompute),
                     words_for_bytes(needed), words_for_bytes(request.memory), with);
}

}  // namespace

std::string Found::name() const {
  return fmt::format("{}, micro-batch {}, recompute {}", to_string(layout), micro_batch, name_of(recompute));
}

std::string print_search(const SearchRequest& request, const std::string& format, const Session& session) {
  Estimates estimates(request);
  SearchResult result = search(request, estimates, session);
  if (result.considered == 0)
    usage_error("the search considers no way that the flags allow",
                fmt::format("it divides ranks among tp within a host, pp, cp, dp and ep, with powers of 2 for chunks and "
                            "micro-batches; stages times chunks divide the {} layers",
                            request.step.plan.options.shape.layers),
                "give fewer flags for parts of a layout, or plan one layout: --layout");
  if (result.best.empty())
    usage_error(
        "no way to train the model fits",
        fmt::format("{} ranks of {}, {} ways considered", request.ranks, words_for_bytes(request.memory), result.considered),
        "take more ranks, a smaller model, or fewer flags for parts of a layout");
  const Wording as(format);
  Document out(format);
  std::vector<Found> explained =
      each(request.explained, [&](const Layout& layout) { return fastest_way(request, estimates, layout); });
  if (explained.size() == 1) explained.insert(explained.begin(), result.best.front());
  for (Found& way : explained) way.why_recompute = why_recompute(request, way);
  add_ways(out, result, request, as);
  if (!explained.empty()) add_explained(out, explained[0], explained[1], request, as);
  return out.print();
}

}  // namespace chorale::plan
