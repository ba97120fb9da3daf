#include "experiments/plan/search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "experiments/plan/document.hpp"
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

// A layout with each micro-batch and each recomputation.
std::vector<Found> ways_of(const Layout& layout, const SearchRequest& request) {
  std::vector<Found> ways;
  const std::int64_t batch = request.step.plan.options.global_batch, asked = request.micro_batch;
  const std::int64_t most = std::min<std::int64_t>(16, batch / layout.replicas());
  for (const std::int64_t micro : asked > 0 ? std::vector{asked} : powers(most)) {
    if (batch % (layout.replicas() * micro) != 0) continue;
    const std::int64_t micro_batches = batch / (layout.replicas() * micro);
    if (!find_pipeline_schedule(layout.schedule)->misfit(pipeline_of(layout, micro_batches)).empty()) continue;
    for (const Remake remake : {Remake::none, Remake::selective, Remake::full}) ways.push_back({layout, micro, remake});
  }
  return ways;
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
    const std::vector<Found> ways = ways_of(layout, request_);
    all_.insert(all_.end(), ways.begin(), ways.end());
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

double planned_bytes(const StepRequest& step) {
  const std::int64_t last = step.plan.layout.stages() - 1;
  return static_cast<double>(std::max(brief_peak(step.plan, 0), last > 0 ? brief_peak(step.plan, last) : 0));
}

SearchResult search(const SearchRequest& request, Estimates& estimates, Clock& clock) {
  SearchResult result;
  std::vector<Found> all = Space(request).all();
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
    found.bytes = planned_bytes(step);
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

// The fastest way to use this layout: of the three with the fastest estimates that fit. If none fits, the way that needs the
// least memory.
Found fastest_way(const SearchRequest& request, Estimates& estimates, const Layout& layout) {
  std::vector<Found> ways = ways_of(layout, request);
  if (ways.empty()) ways.push_back({layout, std::max<std::int64_t>(1, request.micro_batch), Remake::none});
  check(request_for(request, ways.front()).plan.options, layout);  // may refuse
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

std::string days_in(const Found& f, const SearchRequest& request, const Wording& as) {
  return as.number(days_of(f.step, request.step, request.whole));
}

// "1.07", or "~ 1.07" within the planner's error. The fastest itself is 1.
std::string times_the(const Found& fastest, const Found& found, const Wording& as) {
  const double ratio = found.step.seconds / fastest.step.seconds;
  return (!as.plain() && &found != &fastest && std::abs(ratio - 1) <= planner_error ? "~ " : "") + as.number(ratio);
}

std::vector<std::string> columns_of(const SearchRequest& request, const Wording& as) {
  std::vector<std::string> columns{"layout", as.column("micro-batch"), "recompute", as.plain() ? "step_s" : "s/step"};
  if (request.whole.tokens > 0) columns.emplace_back("days");
  columns.insert(columns.end(),
                 {as.plain() ? "times_the_fastest" : "/ fastest", as.plain() ? "mfu" : "MFU",
                  as.plain() ? "memory_bytes" : "memory/rank", as.column("estimate", "s"), as.column("loses by")});
  return columns;
}

std::vector<std::string> row_of(const Found& f, const Found& fastest, const SearchRequest& request, const Wording& as) {
  std::vector<std::string> row{to_string(f.layout), std::to_string(f.micro_batch),
                               remake_words[static_cast<std::size_t>(f.remake)], as.seconds(f.step.seconds)};
  if (request.whole.tokens > 0) row.push_back(days_in(f, request, as));
  row.insert(row.end(), {times_the(fastest, f, as), as.share(f.step.mfu()), as.bytes(static_cast<std::int64_t>(f.bytes)),
                         as.seconds(f.estimate), &f == &fastest ? "" : why_slower(f.step, fastest.step)});
  return row;
}

// Adds a row for each way that was executed, fastest first, with the seconds that it loses to the fastest.
void add_table(Document& out, const SearchResult& result, const SearchRequest& request, const Wording& as) {
  const Found& fastest = result.best.front();
  TextTable table(columns_of(request, as));
  const std::size_t rows = request.rows == 0 ? result.best.size() : std::min(request.rows, result.best.size());
  for (std::size_t i = 0; i < rows; ++i) table.add(row_of(result.best[i], fastest, request, as));
  out.fact("ranks", request.ranks);
  out.fact("memory_limit_bytes", static_cast<std::int64_t>(request.memory));
  out.fact("considered", result.considered);
  out.fact("too_large", result.too_large);
  out.fact("executed", result.best.size());
  out.fact("planner_error", planner_error);
  out.words(
      fmt::format("{} ways considered, {} of which need more than {} for a rank; {} with the fastest estimates were "
                  "executed\n\n",
                  result.considered, result.too_large, words_for_bytes(request.memory), result.best.size()));
  out.table("ways", table);
  out.words(
      fmt::format("\n~: within {:.0f} % of the fastest, the planner's error, so it may be as fast\n", 100 * planner_error));
  if (rows < result.best.size())
    out.words(fmt::format("left out: {} more that were executed; --rows 0 shows them\n", result.best.size() - rows));
  if (request.whole.tokens == 0) return;
  StepRequest best = request.step;
  best.plan.layout = fastest.layout;
  out.words("\nthe fastest: " + words_for_training(fastest.step, best, request.whole));
}

// How `b` compares with `a`, in words.
std::string verdict_on(const Found& b, const Found& a, const SearchRequest& request) {
  const double ratio = b.step.seconds / a.step.seconds;
  const std::string bytes = words_for_bytes(b.bytes), most = words_for_bytes(request.memory);
  std::string words = fmt::format("\n{}: {:.4g} s/step, {:.3g} times the time of\n{}{}\n", b.name(), b.step.seconds, ratio,
                                  a.name(), std::abs(ratio - 1) <= planner_error ? " (~: within the planner's error)" : "");
  if (b.bytes > request.memory)
    words += fmt::format(
        "it does not fit: a rank needs {} of {}, with the least that micro-batches and recomputation leave\n", bytes, most);
  else
    words += fmt::format("a rank needs {} of {}\n", bytes, most);
  const auto& [fast, slow] = ratio < 1 ? std::pair(&b, &a) : std::pair(&a, &b);
  const std::string why = why_slower(slow->step, fast->step);
  return why.empty() ? words : words + fmt::format("{} loses by {}\n", to_string(slow->layout), why);
}

// Two ways side by side: the mean seconds of a rank, by what they are spent on.
void add_explained(Document& out, const Found& a, const Found& b, const SearchRequest& request, const Wording& as) {
  const Shares first = mean_shares(a.step), second = mean_shares(b.step);
  std::set<std::string> names;
  for (const Shares* shares : {&first, &second})
    for (const auto& [name, seconds] : *shares)
      if (seconds != 0) names.insert(name);
  std::vector<std::string> columns = columns_of(request, as);
  if (as.plain()) {  // a row for each way
    columns.pop_back();
    for (const std::string& name : names) columns.push_back(as.column(name, "s"));
    TextTable table(columns);
    for (const Found* way : {&a, &b}) {
      std::vector<std::string> row = row_of(*way, a, request, as);
      row.pop_back();
      for (const std::string& name : names) row.push_back(as.number(share(way == &a ? first : second, name)));
      table.add(row);
    }
    return out.table("explained", table);
  }
  TextTable table({"seconds of a rank", to_string(a.layout), to_string(b.layout), "difference"});
  const auto row = [&](const std::string& name, double x, double y) {
    table.add({name, as.number(x), as.number(y), fmt::format("{:+.4g}", y - x)});
  };
  for (const std::string& name : names) row(name, share(first, name), share(second, name));
  row("the step", a.step.seconds, b.step.seconds);
  out.words(verdict_on(b, a, request) + "\n");
  out.table("explained", table);
}

}  // namespace

std::string Found::name() const {
  return fmt::format("{}, micro-batch {}, recompute {}", to_string(layout), micro_batch,
                     remake_words[static_cast<std::size_t>(remake)]);
}

std::string print_search(const SearchRequest& request, const std::string& format, Clock& clock) {
  Estimates estimates(request);
  const SearchResult result = search(request, estimates, clock);
  if (result.considered == 0)
    usage_error("the search considers no way that the flags allow",
                "it divides ranks among tp within a host, pp, cp, dp and ep, with powers of 2 for chunks and micro-batches",
                "give fewer flags for parts of a layout, or plan one layout: --layout");
  if (result.best.empty())
    usage_error(
        "no way to train the model fits",
        fmt::format("{} ranks of {}, {} ways considered", request.ranks, words_for_bytes(request.memory), result.considered),
        "take more ranks, a smaller model, or fewer flags for parts of a layout");
  const Wording as(format);
  Document out(format);
  std::vector<Found> explained;
  for (const Layout& layout : request.explained) explained.push_back(fastest_way(request, estimates, layout));
  add_table(out, result, request, as);
  if (!explained.empty())
    add_explained(out, explained.size() == 1 ? result.best.front() : explained[0], explained.back(), request, as);
  return out.print();
}

}  // namespace chorale::plan
