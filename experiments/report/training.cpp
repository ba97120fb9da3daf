#include "experiments/report/training.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "experiments/common/statistics.hpp"
#include "experiments/report/blocks.hpp"
#include "src/base/text.hpp"

namespace chorale::report {
namespace {

double last_of(const std::vector<double>& values) { return values.empty() ? absent : values.back(); }

// The shares of the parts of one step, which add up to 1. `phases`: the rank's time in each phase, in seconds.
std::vector<double> shares_of_step(const std::vector<std::string>& names, const std::vector<double>& phases, double step) {
  const auto of = [&](const std::string& name) {
    const auto found = std::find(names.begin(), names.end(), name);
    const double seconds = found == names.end() ? 0 : phases[static_cast<std::size_t>(found - names.begin())];
    return std::isfinite(seconds) ? std::max(0.0, seconds) : 0;
  };
  std::vector<double> parts{of("forward"),      of("backward"), of("optimizer"),
                            of("comm_exposed"), of("bubble"),   of("data") + of("io")};
  const double known = sum_of(parts), whole = std::max(step, known);  // phases can be longer: a different rank timed them
  parts.push_back(whole - known);
  for (double& part : parts) part /= whole;
  return parts;
}

// The shares of the parts, by rank and part, averaged over the steps after the warm-up. Each step has the same weight, so
// one long step changes little. Medians of the parts would not add up to the step.
std::vector<double> shares_of(const RecordedRun& run) {
  const RecordGroup group = run.group("phases");
  const std::vector<std::string> names = group.words("phase");
  const std::vector<double> steps = run.group("train").numbers("step_time");
  const std::vector<std::int64_t> shape = group.shape("phase_time");
  if (shape.size() != 2 || names.empty()) return {};
  const auto rows = in_rows(group.numbers("phase_time"), static_cast<std::size_t>(shape[0] * shape[1]));
  const std::size_t both = std::min(rows.size(), steps.size());
  std::vector<std::vector<double>> of_steps;
  for (auto s = static_cast<std::size_t>(warm_up_of(static_cast<std::int64_t>(both), run.source->warm_up)); s < both; ++s) {
    std::vector<double> of_ranks;
    if (!(steps[s] > 0)) continue;
    for (const auto& phases : in_rows(rows[s], names.size()))
      std::ranges::copy(shares_of_step(names, phases, steps[s]), std::back_inserter(of_ranks));
    of_steps.push_back(std::move(of_ranks));
  }
  return mean_of(of_steps);
}

}  // namespace

std::vector<std::string> labels(const RecordGroup& group, const std::string& dimension) {
  std::vector<std::string> words = group.words(dimension);
  for (std::string& word : words) word = replace_all(word, '_', ' ');
  return words;
}

std::vector<std::vector<double>> in_rows(const std::vector<double>& values, std::size_t columns) {
  std::vector<std::vector<double>> rows;
  for (std::size_t at = 0; columns > 0 && at + columns <= values.size(); at += columns)
    rows.emplace_back(values.begin() + static_cast<std::ptrdiff_t>(at),
                      values.begin() + static_cast<std::ptrdiff_t>(at + columns));
  return rows;
}

double held_out_loss(const RecordedRun& run) { return last_of(run.group("eval").numbers("loss")); }

double loss_floor(const RecordedRun& run) { return last_of(run.root().numbers("loss_floor")); }

MemoryUse memory_of(const RecordedRun& run) {
  const RecordGroup group = run.group("memory");
  MemoryUse use{.categories = group.words("category")};
  const std::size_t categories = use.categories.size();
  use.adds_up = group.has("planned_at_peak");
  const char* const held = use.adds_up ? "at_peak" : "peak";
  const auto place = group.shape(held);
  const std::vector<double> of_steps = group.numbers(held);
  const std::size_t each = place.size() == 2 ? static_cast<std::size_t>(place[0] * place[1]) : 0;
  if (each > 0 && of_steps.size() >= each)
    use.held = in_rows({of_steps.end() - static_cast<std::ptrdiff_t>(each), of_steps.end()}, categories);
  use.planned = in_rows(group.numbers(use.adds_up ? "planned_at_peak" : "planned"), categories);
  use.stages = labels(group, "stage");
  return use;
}

double largest_peak(const RecordedRun& run) {
  double most = last_of(run.group("train").numbers("peak_bytes"));
  if (!std::isnan(most)) return most;  // older records lack this value, but have an upper bound
  for (const auto& rank : memory_of(run).held) most = std::isnan(most) ? sum_of(rank) : std::max(most, sum_of(rank));
  return most;
}

const RecordedRun& fullest_of(const std::vector<const RecordedRun*>& runs) {
  return **std::ranges::max_element(runs, {}, [](const RecordedRun* run) {
    const double peak = largest_peak(*run);
    return std::isnan(peak) ? -1 : peak;
  });
}

double least_unfragmented(const RecordedRun& run) {
  const std::vector<double> free = run.group("memory").numbers("free"),
                            largest = run.group("memory").numbers("largest_free");
  double least = absent;
  for (std::size_t i = 0; i < std::min(free.size(), largest.size()); ++i)
    if (free[i] > 0) least = std::fmin(least, largest[i] / free[i]);
  return least;
}

double bytes_per_step(const RecordedRun& run) {
  if (run.simulated()) {
    const std::vector<double> sent = run.group("simulated").numbers("sent");
    return sent.empty() ? absent : sum_of(sent);
  }
  const std::vector<double> sent = run.group("traffic").numbers("bytes_measured");
  std::vector<double> evaluations = run.group("traffic").numbers("bytes_evaluations");  // older records lack these
  if (std::isnan(held_out_loss(run))) evaluations.assign(sent.size(), 0);               // the run made no evaluation
  const std::size_t steps = run.group("train").numbers("step").size();
  const bool all_counted = std::ranges::none_of(sent, [](double bytes) { return bytes < 0; });
  if (sent.empty() || evaluations.size() != sent.size() || steps == 0 || !all_counted) return absent;
  return (sum_of(sent) - sum_of(evaluations)) / static_cast<double>(steps);
}

const std::vector<std::string>& StepParts::names() {
  static const std::vector<std::string> parts{"forward", "backward",    "optimizer", "exposed communication",
                                              "bubble",  "data and io", "rest"};
  return parts;
}

StepParts step_parts(const std::vector<const RecordedRun*>& runs) {
  const double step = over_repetitions(runs, step_seconds).median;
  std::vector<std::vector<double>> shares;  // [run][rank × part]
  for (const RecordedRun* run : runs)
    if (std::vector<double> own = shares_of(*run); !own.empty()) shares.push_back(std::move(own));
  std::erase_if(shares, [&](const auto& own) { return own.size() != shares.front().size(); });
  StepParts parts{in_rows(mean_of(shares), StepParts::names().size())};
  for (auto& rank : parts.seconds)
    for (double& part : rank) part *= step;
  return parts;
}

double steps_of_warm_up(const RecordedRun& run) {
  const std::int64_t steps = std::ssize(run.group("train").numbers("step"));
  return steps == 0 || !run.source ? absent : static_cast<double>(warm_up_of(steps, run.source->warm_up));
}

double steady_median(const RecordedRun& run, const char* column) {
  const std::vector<double> steps = run.steady(column);
  return steps.empty() ? absent : summarize(steps).median;
}

double step_seconds(const RecordedRun& run) { return steady_median(run, "step_time"); }
double comm_share(const RecordedRun& run) { return steady_median(run, "comm_share"); }
double bubble_share(const RecordedRun& run) { return steady_median(run, "bubble_share"); }
double dropped_share(const RecordedRun& run) { return steady_median(run, "dropped_share"); }

double attention_imbalance(const RecordedRun& run) {
  const RecordGroup ranks = run.group("ranks");
  const std::vector<double> places = ranks.numbers("cp"), seconds = ranks.numbers("attention_seconds");
  return seconds.empty() ? absent : imbalance(places, seconds);
}

double predicted_step_time(const RecordedRun& run) {
  const std::vector<double> ranks = run.group("forecast").numbers("step_time");
  return ranks.empty() ? absent : ranks[0];
}

}  // namespace chorale::report
