#include "experiments/bench/staging.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "collectives/backends/backends.hpp"
#include "collectives/backends/mapped/shared_reach.hpp"
#include "experiments/common/statistics.hpp"

namespace chorale::bench {
namespace {

constexpr std::int64_t shortest = 512, longest = 128 << 10;
constexpr std::int64_t beyond_cells = 4 << 10;  // two messages of this size do not fit into cells (mapped/cell.hpp)
constexpr int turns = 2;  // the two ways take turns, because a virtual machine's speed changes within seconds
constexpr std::int64_t repetitions = 200;

}  // namespace

std::int64_t best_staged_bytes(const std::map<std::int64_t, StagingTimes>& times) {
  std::int64_t best = 0;
  double sum = 0, least = 0;  // relative to copying every message
  for (const auto& [length, time] : times) {
    sum += std::log(time.staged / time.copied);
    if (sum >= least) continue;
    least = sum;
    best = length;
  }
  return best;
}

StagedBytes measure_staged_bytes(const std::string& backend, const Sweep& sweep, const Session& session) {
  const Backend& row = backend_named(backend);
  const mpi::Runtime& runtime = *session.runtime;
  if (!row.maps_memory || row.ranks_are_threads || runtime.size() == 1) return {};
  if (!mpi::ranks_where(runtime.world(), !mapped::kernel_copies().work).empty()) return {};
  Sweep chunked = sweep;  // short messages are the chunks of a longer vector
  chunked.backends = {backend};
  chunked.wanted = {.ops = {"all_reduce"}, .algorithms = {"direct"}, .chunks = {}, .in_place = "no", .factor = 2};
  chunked.wanted.begin = chunked.wanted.end = runtime.size() * beyond_cells;
  for (std::int64_t length = shortest; length < beyond_cells; length *= 2)
    chunked.wanted.chunks.push_back(std::to_string(beyond_cells / length));
  chunked.how.heap = true;
  chunked.how.check = chunked.how.ceiling = false;
  if (chunked.how.repetitions == 0) chunked.how.repetitions = repetitions;
  Sweep whole = chunked;
  whole.wanted.chunks = {"1"};
  whole.wanted.end = runtime.size() * longest;
  std::map<std::int64_t, StagingTimes> times;
  for (int turn = 0; turn < turns; ++turn)
    for (Sweep* const lengths : {&chunked, &whole})
      for (const bool staged : {true, false}) {
        lengths->how.staged_up_to = staged ? std::numeric_limits<std::int64_t>::max() : 0;
        const Outcome outcome = bench::run(*lengths, session);
        if (outcome.stopped) return {.stopped = true};
        for (const Series& series : outcome.series) {
          StagingTimes& both = times[series.row.bytes() / series.row.ranks / series.row.chunks];
          double& least = staged ? both.staged : both.copied;
          const double median = summarize(series.slowest).median;
          least = least > 0 ? std::min(least, median) : median;
        }
      }
  return {runtime.rank() == 0 ? best_staged_bytes(times) : -1};
}

}  // namespace chorale::bench
