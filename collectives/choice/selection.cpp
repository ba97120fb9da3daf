#include "collectives/choice/selection.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "collectives/analysis/cost.hpp"
#include "collectives/backends/backends.hpp"
#include "collectives/prediction/prediction.hpp"
#include "collectives/schedule/chunking.hpp"
#include "src/base/error.hpp"
#include "src/base/text.hpp"

namespace chorale {
namespace {

// Maximum number of ranks in a prediction; with more ranks, the order of the algorithms hardly changes.
constexpr int most_ranks_priced = 32;
constexpr std::int64_t worth_cutting = 256 << 10;
constexpr int usual_chunks = 8;

bool can_run(const std::string& name, const Problem& problem, bool native_too) {
  const Algorithm* algorithm = find_algorithm(problem.what, name);
  return algorithm ? fits(*algorithm, problem) : name == "native" && native_too;
}

double distance(std::int64_t a, std::int64_t b) {
  return std::abs(std::log2(static_cast<double>(a + 1) / static_cast<double>(b + 1)));
}

// Picks `size` ranks evenly from the ranks of the problem, and returns the hosts of these ranks.
std::vector<int> thinned(const Problem& problem, int size) {
  std::vector<int> ranks;
  for (int rank = 0; rank < size; ++rank) ranks.push_back(rank * problem.size / size);
  return hosts_among(ranks, problem.hosts);
}

// Returns the schedules of all ranks. Returns an empty vector if the algorithm does not fit or has no schedule.
std::vector<Schedule> schedules(const std::string& algorithm, int chunks, const Problem& problem) {
  const Algorithm* row = find_algorithm(problem.what, algorithm);
  if (!row || !fits(*row, problem)) return {};
  std::vector<Schedule> ranks = plan_all_ranks(*row, problem);
  if (chunks > 1)
    for (Schedule& rank : ranks) rank = cut_into_chunks(rank, chunks);
  return ranks;
}

}  // namespace

double predict(const std::string& backend, const std::string& algorithm, int chunks, const Problem& problem,
               std::int64_t element_bytes, const Price& price) {
  const std::vector<Schedule> ranks = schedules(algorithm, chunks, problem);
  if (ranks.empty()) return -1;
  return backend_named(backend).maps_memory ? predict_mapped(ranks, element_bytes, price)
                                            : predict(ranks, element_bytes, price);
}

bool native_agrees(const Problem& problem, DType dtype, Redop op) {
  if (problem.blocks.total() > std::numeric_limits<int>::max()) return false;
  if (!reduces(problem.what)) return true;
  const bool is_extreme = op == Redop::min || op == Redop::max, is_sum = op == Redop::sum || op == Redop::avg;
  return !(is_extreme && is_floating(dtype)) && !(is_sum && dtype == DType::u8);
}

Selector::Selector(TuningTable table, Machine machine, const std::string& here) {
  if (table.machine == here) table_ = std::move(table);
  if (machine.signature == here) machine_ = std::move(machine);
}

bool Selector::is_calibrated(const std::string& backend, const Problem& problem) const {
  const int number = number_of_hosts(problem.hosts);
  const auto has_level = [&](const char* span) {
    return prediction::nearest(machine_, backend, span, problem.size, number) != nullptr;
  };
  if (problem.size > prediction::most_ranks || !has_level("host")) return false;
  return number == 1 || (!backend_named(backend).maps_memory && has_level("network"));
}

double Selector::usual_barrier(const std::string& backend, const Problem& problem) const {
  if (!is_calibrated(backend, problem)) return -1;
  return prediction::nearest(machine_, backend, "host", problem.size, number_of_hosts(problem.hosts))->barrier;
}

std::int64_t Selector::staged_bytes(const std::string& backend, int ranks) const {
  const Level* const level = prediction::nearest(machine_, backend, "host", ranks, 1);
  const auto shares_cores = [&](int number) { return number > machine_.cores; };
  return level && shares_cores(level->ranks) == shares_cores(ranks) ? level->staged_bytes : -1;
}

double Selector::predict(const std::string& backend, const std::string& algorithm, int chunks, const Problem& problem,
                         DType dtype, const SideBySide& all, const prediction::WorkBeside& beside) const {
  const bool is_alone = all.groups.empty();
  if (!is_calibrated(backend, is_alone ? problem : all.whole(problem)))
    return is_alone && beside.pieces == 0
               ? chorale::predict(backend, algorithm, chunks, problem, size_of(dtype), backend_named(backend).usual)
               : -1;
  std::vector<Schedule> ranks = schedules(algorithm, chunks, problem);
  if (ranks.empty()) return -1;
  if (!is_alone) ranks = side_by_side(ranks, all);
  return prediction::predict(machine_, backend, backend_named(backend).maps_memory, ranks, size_of(dtype),
                             hosts_among(is_alone ? problem.hosts : all.hosts), prediction::slowness(machine_, dtype),
                             beside)
      .value_or(-1);
}

const std::vector<Choice>& Selector::priced(const std::string& backend, const Problem& problem, std::int64_t bytes) const {
  const int magnitude = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(bytes)));
  const int size = std::min(problem.size, most_ranks_priced);
  const std::vector<int> hosts = thinned(problem, size);
  auto [at, is_new] = priced_.try_emplace({backend, problem.what, size, hosts, problem.in_place, magnitude});
  if (!is_new) return at->second;

  const std::int64_t round_bytes = bytes == 0 ? 0 : std::int64_t{1} << (magnitude - 1);
  const Problem even = Problem::even(problem.what, round_bytes, size, 0, problem.in_place, hosts);
  const std::string caution = is_calibrated(backend, even) ? machine_.file : not_calibrated;
  std::vector<std::pair<double, Choice>> all;
  for (const Algorithm& algorithm : all_algorithms()) {
    if (algorithm.what != problem.what || !fits(algorithm, even)) continue;
    for (const int chunks : {1, usual_chunks}) {
      if (chunks > 1 && bytes < worth_cutting) continue;
      const double seconds = predict(backend, algorithm.name, chunks, even, DType::u8);  // one prediction for all types
      const std::string cut = chunks > 1 ? fmt::format(" in {} chunks", chunks) : "";
      all.push_back(
          {seconds,
           {algorithm.name, chunks,
            fmt::format("{}{} by the cost model{}{}", human_seconds(seconds), cut, caution.empty() ? "" : ", ", caution)}});
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (auto& [seconds, choice] : all) at->second.push_back(std::move(choice));
  return at->second;
}

Choice Selector::choose(const std::string& backend, const Problem& problem, std::int64_t bytes, bool native_too) const {
  const Tuned* best = nullptr;
  const int hosts = number_of_hosts(problem.hosts);
  const auto rank = [&](const Tuned& t) {  // prefers lines with the call's in_place, then the nearest size
    return std::pair(t.in_place != problem.in_place, distance(t.bytes, bytes));
  };
  for (const Tuned& t : table_.choices)
    if (t.backend == backend && t.what == problem.what && t.ranks == problem.size && t.hosts == hosts &&
        can_run(t.algorithm, problem, native_too) && (!best || rank(t) < rank(*best)))
      best = &t;
  if (best) return {best->algorithm, best->chunks, best->why()};
  for (const Choice& choice : priced(backend, problem, bytes))
    if (can_run(choice.algorithm, problem, false)) return choice;
  for (const Algorithm& algorithm : all_algorithms())  // no priced algorithm fits: takes the first that fits
    if (algorithm.what == problem.what && fits(algorithm, problem)) return {algorithm.name, 1, "nothing else fits"};
  misuse(fmt::format("no algorithm of ours fits {} on {} ranks", name_of(problem.what), problem.size),
         std::source_location::current());
}

}  // namespace chorale
