#include "experiments/plan/ways_table.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "experiments/train/shape_options.hpp"
#include "src/base/text.hpp"

namespace chorale::plan {
namespace {

std::string days_in(const Found& f, const SearchRequest& request, const Wording& as) {
  return as.number(days_of(f.step, request.step, request.whole));
}

// "1.07", or "~ 1.07" if the ratio is within the planner's error. The ratio of the fastest way is 1.
std::string times_the(const Found& fastest, const Found& found, const Wording& as) {
  const double ratio = found.step.seconds / fastest.step.seconds;
  return (!as.plain() && &found != &fastest && std::abs(ratio - 1) <= planner_error ? "~ " : "") + as.number(ratio);
}

// The two kinds of work whose time grew most, compared with the fastest way.
std::string why_slower(const PredictedStep& step, const PredictedStep& best) {
  const Shares theirs = mean_shares(best);
  std::vector<std::pair<double, std::string>> more;
  for (const auto& [name, seconds] : mean_shares(step)) more.emplace_back(seconds - share(theirs, name), name);
  std::ranges::sort(more, std::greater<>());
  std::vector<std::string> words;
  for (const auto& [seconds, name] : more)
    if (words.size() < 2 && seconds > 0.002 * best.seconds)
      words.push_back(fmt::format("{} +{}", name, human_seconds(seconds)));
  return join(words, ", ");
}

bool is_tight(const Found& f, const SearchRequest& request) { return f.bytes > tight_share * request.capacity; }

std::string head_of(const SearchResult& result, const SearchRequest& request) {
  const TrainingOptions& o = request.step.plan.options;
  const Accelerator& accelerator = request.step.system.accelerator;
  std::string head = fmt::format(
      "{} {}: {:.2f} million parameters{} in {}, {} sequences of {} tokens per step; a rank may use {}{}\n", request.ranks,
      accelerator.name, static_cast<double>(o.shape.parameters()) / 1e6, train::words_for_active(o.shape),
      name_of(o.compute), o.batch.global, o.shape.sequence, words_for_bytes(request.memory),
      request.memory < request.capacity ? " of " + words_for_bytes(request.capacity) : "");
  if (!request.assumed.empty()) head += "assumed: " + request.assumed + "\n";
  head += "predicted by " + origin_of(request.step.system) + "\n";
  head += fmt::format(
      "{} ways considered, {} of which need more memory\n"
      "{} were executed: the fastest estimates, and all within {:.0f} % of the fastest one, because estimates err by so "
      "much; at "
      "most three of each division of the ranks\n",
      result.considered, result.too_large, result.best.size(), 100 * estimate_error);
  return head + "\n";
}

}  // namespace

double share(const Shares& shares, const std::string& name) {
  const auto found = std::ranges::find(shares, name, &Shares::value_type::first);
  return found == shares.end() ? 0 : found->second;
}

std::vector<std::string> columns_of_ways(const SearchRequest& request, const Wording& as) {
  std::vector<std::string> columns{"layout", as.column("micro-batch"), "recompute", as.plain() ? "step_s" : "s/step",
                                   as.plain() ? "tokens_per_s" : "tokens/s"};
  if (request.whole.tokens > 0) columns.emplace_back("days");
  columns.insert(columns.end(), {as.plain() ? "times_the_fastest" : "/ fastest", as.plain() ? "mfu" : "MFU",
                                 as.plain() ? "memory_bytes" : "memory/rank",
                                 as.plain() ? "memory_share" : "of " + words_for_bytes(request.capacity),
                                 as.column("estimate", "s"), as.column("loses by")});
  return columns;
}

std::vector<std::string> row_of_way(const Found& f, const Found& fastest, const SearchRequest& request, const Wording& as) {
  const TrainingOptions& o = request.step.plan.options;
  const double speed = static_cast<double>(o.batch.global * o.shape.sequence) / f.step.seconds;
  std::vector<std::string> row{to_string(f.layout), std::to_string(f.micro_batch), name_of(f.recompute),
                               as.seconds(f.step.seconds), as.plain() ? as.number(speed) : fmt::format("{:.0f}", speed)};
  if (request.whole.tokens > 0) row.push_back(days_in(f, request, as));
  row.insert(row.end(), {times_the(fastest, f, as), as.share(f.step.mfu()), as.bytes(static_cast<std::int64_t>(f.bytes)),
                         (!as.plain() && is_tight(f, request) ? "! " : "") + as.share(f.bytes / request.capacity),
                         as.seconds(f.estimate), &f == &fastest ? "" : why_slower(f.step, fastest.step)});
  return row;
}

void add_ways(Document& out, const SearchResult& result, const SearchRequest& request, const Wording& as) {
  const Found& fastest = result.best.front();
  const TrainingOptions& o = request.step.plan.options;
  TextTable table(columns_of_ways(request, as));
  const std::size_t rows = request.rows == 0 ? result.best.size() : std::min(request.rows, result.best.size());
  const std::vector<Found> shown(result.best.begin(), result.best.begin() + static_cast<std::ptrdiff_t>(rows));
  for (std::size_t i = 0; i < rows; ++i) table.add(row_of_way(result.best[i], fastest, request, as));
  out.fact("ranks", request.ranks);
  out.fact("parameters", o.shape.parameters());
  out.fact("dtype", name_of(o.compute));
  out.fact("global_batch_size", o.batch.global);
  out.fact("seq_length", o.shape.sequence);
  out.fact("memory_limit_bytes", static_cast<std::int64_t>(request.memory));
  out.fact("memory_bytes", static_cast<std::int64_t>(request.capacity));
  out.fact("considered", result.considered);
  out.fact("too_large", result.too_large);
  out.fact("executed", result.best.size());
  out.fact("planner_error", planner_error);
  out.words(head_of(result, request));
  out.table("ways", table);
  out.words(
      fmt::format("\n~: within {:.0f} % of the fastest, the planner's error, so it may be as fast\n", 100 * planner_error));
  if (std::ranges::any_of(shown, [&](const Found& f) { return is_tight(f, request); }))
    out.words(fmt::format("!: needs over {:.0f} % of the memory, so it may fail: libraries and fragmentation come on top\n",
                          100 * tight_share));
  if (rows < result.best.size())
    out.words(fmt::format("left out: {} more that were executed; --rows 0 shows them\n", result.best.size() - rows));
  if (request.whole.tokens == 0) return;
  StepRequest best = request.step;
  best.plan.layout = fastest.layout;
  out.words("\nthe fastest: " + words_for_training(fastest.step, best, request.whole));
}

}  // namespace chorale::plan
