#include "experiments/plan/search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "experiments/plan/candidates.hpp"
#include "experiments/plan/estimates.hpp"
#include "experiments/plan/time_on_system.hpp"
#include "parallel/assemble.hpp"
#include "src/base/error.hpp"
#include "src/base/progress.hpp"
#include "src/base/text.hpp"
#include "src/base/text_table.hpp"

namespace chorale::plan {
namespace {

constexpr const char* remake_words[] = {"none", "selective", "full"};

std::vector<std::int64_t> divisors(std::int64_t of, std::int64_t most) {
  std::vector<std::int64_t> all;
  for (std::int64_t i = 1; i <= std::min(of, most); ++i)
    if (of % i == 0) all.push_back(i);
  return all;
}
std::vector<std::int64_t> powers(std::int64_t most) {
  std::vector<std::int64_t> all;
  for (std::int64_t i = 1; i <= most; i *= 2) all.push_back(i);
  return all;
}

// Divisions of the ranks among tp (within a host), pp, cp, dp and ep, with what goes with each. ZeRO shards among all
// replicas, or among those of a host.
class Space {
 public:
  explicit Space(const SearchRequest& request) : request_(request), options_(request.step.plan.options) {}

  std::vector<Found> all() {
    const ModelShape& shape = options_.shape;
    for (const std::int64_t t : divisors(std::gcd(shape.heads, request_.ranks), request_.step.system.host.accelerators))
      for (const std::int64_t p : divisors(shape.layers, request_.ranks / t))
        for (const std::int64_t c : powers(shape.sequence >= 8192 ? 8 : 1))
          if (request_.ranks % (t * p * c) == 0) divide(t, p, c, request_.ranks / (t * p * c));
    return std::move(all_);
  }

 private:
  void divide(std::int64_t t, std::int64_t p, std::int64_t c, std::int64_t d) {
    if (options_.global_batch % d != 0) return;
    Layout layout;
    layout["dp"] = d, layout["tp"] = t, layout["pp"] = p, layout["cp"] = c;
    for (const bool sequence : {false, true})
      for (const int zero : {0, 1, 2, 3})
        for (const std::int64_t chunks : powers(p > 1 ? options_.shape.layers / p : 1)) {
          layout.sequence = sequence, layout.zero = zero, layout.chunks = chunks;
          const bool useless = (sequence && t == 1) || (zero > 0 && d * c == 1);
          if (!useless && options_.shape.layers % (p * chunks) == 0) shards(layout);
        }
  }
  void shards(const Layout& layout) {
    experts(layout);
    const std::int64_t host = request_.step.system.host.accelerators / layout.shards(), all = layout.zero_ranks();
    if (layout.zero > 0 && host > 1 && host < all && all % host == 0 && host % layout.context_ranks() == 0)
      experts(with_zero_ranks(layout, host));
  }
  void experts(Layout layout) {
    const std::int64_t most = options_.shape.experts.count > 0 ? layout.zero_ranks() : 1;
    for (const std::int64_t e : divisors(std::max<std::int64_t>(1, options_.shape.experts.count), most)) {
      layout["ep"] = e;
      layout.schedule = default_schedule(layout.chunks);
      batches(layout);
      if (layout.chunks == 1 && layout.stages() > 1) layout.schedule = "zb-h1", batches(layout);
    }
  }
  void batches(const Layout& layout) {
    const std::int64_t asked = request_.micro_batch, most = options_.global_batch / layout.replicas();
    for (const std::int64_t micro : asked > 0 ? std::vector{asked} : powers(std::min<std::int64_t>(16, most))) {
      if (options_.global_batch % (layout.replicas() * micro) != 0) continue;
      const std::int64_t micro_batches = options_.global_batch / (layout.replicas() * micro);
      if (!find_pipeline_schedule(layout.schedule)->misfit(pipeline_of(layout, micro_batches)).empty()) continue;
      for (const Remake remake : {Remake::none, Remake::selective, Remake::full}) all_.push_back({layout, micro, remake});
    }
  }

  const SearchRequest& request_;
  const TrainingOptions& options_;
  std::vector<Found> all_;
};

StepRequest request_for(const SearchRequest& search, const Found& found) {
  StepRequest request = search.step;
  request.plan.layout = found.layout;
  request.plan.options.micro_batch = found.micro_batch, request.plan.options.remake = found.remake;
  request.plan.options.memory_limit = 0;
  return request;
}

bool goes_together(const StepRequest& request) {
  try {
    const TrainingOptions& o = request.plan.options;
    check(o, request.plan.layout);
    return fits(request.plan.layout, {.shape = o.shape,
                                      .world = request.plan.layout.ranks(),
                                      .global_batch = o.global_batch,
                                      .micro_batch = o.micro_batch,
                                      .one_host = false});
  } catch (const Error&) {
    return false;
  }
}

double share(const Shares& shares, const std::string& name) {
  const auto found = std::ranges::find(shares, name, &Shares::value_type::first);
  return found == shares.end() ? 0 : found->second;
}

// The two kinds of spending that grew most.
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

struct SearchResult {
  std::vector<Found> best;  // executed, fastest first
  std::size_t considered = 0, too_large = 0;
};

SearchResult search(const SearchRequest& request, Clock& clock) {
  SearchResult result;
  std::vector<Found> all = Space(request).all();
  Estimates estimates(request);
  Progress progress("search", std::ssize(all), clock, Progress::screen_of(stderr));
  std::vector<Found> fit;
  for (std::size_t i = 0; i < all.size(); ++i) {
    progress.update(static_cast<std::int64_t>(i), to_string(all[i].layout));
    if (!request.wanted(all[i].layout) || !goes_together(request_for(request, all[i]))) continue;
    ++result.considered;
    estimates.estimate(all[i]);
    all[i].bytes <= 1.05 * request.memory ? fit.push_back(std::move(all[i])) : void(++result.too_large);
  }
  std::ranges::stable_sort(fit, {}, &Found::estimate);
  std::map<std::array<std::int64_t, most_axes>, int> executed;  // of each division of the ranks, only the three fastest
  for (Found& found : fit) {
    if (result.best.size() == request.executed) break;
    if (executed[found.layout.sizes] == 3) continue;
    const StepRequest step = request_for(request, found);
    found.bytes =
        static_cast<double>(std::max(brief_peak(step.plan, 0), brief_peak(step.plan, step.plan.layout.stages() - 1)));
    if (found.bytes > request.memory) {
      ++result.too_large;
      continue;
    }
    progress.update(std::ssize(all), found.name());
    found.step = predict_step(step), ++executed[found.layout.sizes];
    result.best.push_back(std::move(found));
  }
  std::ranges::stable_sort(result.best, {}, [](const Found& f) { return f.step.seconds; });
  return result;
}

// The first ten, with what each loses against the fastest.
std::string table_of(const SearchResult& result, const SearchRequest& request, const std::string& format) {
  std::vector<std::string> columns{"layout", "micro-batch", "recompute", "s/step",
                                   "MFU",    "memory/rank", "estimate",  "loses by"};
  const bool whole = request.whole.tokens > 0;
  if (whole) columns.insert(columns.begin() + 4, "days");
  TextTable table(columns);
  for (std::size_t i = 0; i < std::min<std::size_t>(result.best.size(), 10); ++i) {
    const Found& f = result.best[i];
    std::vector<std::string> row{to_string(f.layout), std::to_string(f.micro_batch),
                                 remake_words[static_cast<std::size_t>(f.remake)], fmt::format("{:.4g}", f.step.seconds)};
    if (whole) row.push_back(fmt::format("{:.4g}", days_of(f.step, request.step, request.whole)));
    row.insert(row.end(), {fmt::format("{:.1f} %", 100 * f.step.mfu()), decimal_bytes(static_cast<std::int64_t>(f.bytes)),
                           fmt::format("{:.4g}", f.estimate), i == 0 ? "" : why_slower(f.step, result.best[0].step)});
    table.add(row);
  }
  if (format != "text") return table.print(format);
  StepRequest best = request.step;
  best.plan.layout = result.best.front().layout;
  const std::string fastest =
      whole ? "\nthe fastest: " + words_for_training(result.best.front().step, best, request.whole) : "";
  return fmt::format(
      "{} ways considered, {} of which need more than {} for a rank; {} with the fastest estimates were executed\n\n{}{}",
      result.considered, result.too_large, decimal_bytes(static_cast<std::int64_t>(request.memory)), result.best.size(),
      table.print(format), fastest);
}

// Two of them side by side, by name: the mean seconds of a rank, by what they are spent on. "" if one is not among them.
std::string explain(const SearchResult& result, const std::string& a, const std::string& b) {
  const Found* pair[2] = {nullptr, nullptr};
  for (const Found& found : result.best)
    for (const int i : {0, 1})
      if (const std::string& word = i == 0 ? a : b; !pair[i] && (to_string(found.layout) == word || found.name() == word))
        pair[i] = &found;
  if (!pair[0] || !pair[1]) return "";
  TextTable table({"seconds of a rank", to_string(pair[0]->layout), to_string(pair[1]->layout), "difference"});
  const Shares first = mean_shares(pair[0]->step), second = mean_shares(pair[1]->step);
  std::set<std::string> names;
  for (const Shares* shares : {&first, &second})
    for (const auto& [name, seconds] : *shares) names.insert(name);
  const auto row = [&](const std::string& name, double x, double y) {
    table.add({name, fmt::format("{:.4g}", x), fmt::format("{:.4g}", y), fmt::format("{:+.4g}", y - x)});
  };
  for (const std::string& name : names) row(name, share(first, name), share(second, name));
  row("the step", pair[0]->step.seconds, pair[1]->step.seconds);
  return fmt::format("{}\n{}\n\n{}", pair[0]->name(), pair[1]->name(), table.print("text"));
}

}  // namespace

std::string Found::name() const {
  return fmt::format("{}, micro-batch {}, recompute {}", to_string(layout), micro_batch,
                     remake_words[static_cast<std::size_t>(remake)]);
}

void print_search(const SearchRequest& request, const std::string& explained, const std::string& format, Clock& clock) {
  const SearchResult result = search(request, clock);
  if (result.considered == 0)
    usage_error("the search considers no way that the flags allow",
                "it divides ranks among tp within a host, pp, cp, dp and ep, with powers of 2 for chunks and micro-batches",
                "give fewer flags for parts of a layout, or plan one layout: --layout");
  if (result.best.empty())
    usage_error("no way to train the model fits",
                fmt::format("{} ranks of {}, {} ways considered", request.ranks,
                            decimal_bytes(static_cast<std::int64_t>(request.memory)), result.considered),
                "take more ranks, a smaller model, or fewer flags for parts of a layout");
  fmt::print("{}", table_of(result, request, format));
  if (explained.empty() || format != "text") return;
  const std::vector<std::string> pair = split(explained, ',');
  const std::string text = pair.size() == 2 ? explain(result, pair[0], pair[1]) : "";
  if (text.empty())
    usage_error("--explain names no two layouts that the search has executed", explained,
                fmt::format("name two of the table: --explain {},{}", to_string(result.best.front().layout),
                            to_string(result.best.back().layout)));
  fmt::print("\n{}", text);
}

}  // namespace chorale::plan
