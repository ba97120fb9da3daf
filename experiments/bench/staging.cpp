#include "experiments/bench/staging.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "collectives/backends/backends.hpp"
#include "collectives/backends/mapped/transport.hpp"
#include "collectives/call/world.hpp"
#include "experiments/common/statistics.hpp"

namespace chorale::bench {
namespace {

constexpr std::int64_t shortest = 512, longest = 128 << 10;
constexpr std::int64_t beyond_cells = 4 << 10;  // two messages of this size do not fit into cells (mapped/cell.hpp)
constexpr int turns = 2;  // the two ways take turns, because a virtual machine's speed changes within seconds
constexpr std::int64_t repetitions = 200;

}  // namespace

std::int64_t best_staged_bytes(const std::map<std::int64_t, StagingTimes>& times) {
  std::int64_t best = times.empty() ? -1 : 0;
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
  const mpi::Runtime& runtime = *session.runtime;
  if (!backend_named(backend).open || runtime.size() == 1) return {};
  {
    const Communicator world = open_world(backend, runtime, session.clock);
    const auto* const mapped = dynamic_cast<const mapped::MappedTransport*>(&world.transport());
    if (!mapped || !mapped->reach().has_kernel_copies()) return {};
  }
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
  StagedBytes found;
  std::map<std::int64_t, StagingTimes> times;
  for (int turn = 0; turn < turns; ++turn)
    for (Sweep* const lengths : {&chunked, &whole})
      for (const bool staged : {true, false}) {
        lengths->staged_up_to = staged ? std::numeric_limits<std::int64_t>::max() : 0;
        const Outcome outcome = bench::run(*lengths, session);
        if (outcome.stopped) return {.stopped = true};
        if (!outcome.busy.empty()) found.busy = outcome.busy;
        for (const Series& series : outcome.series) {
          StagingTimes& both = times[series.row.bytes() / series.row.ranks / series.row.chunks];
          double& least = staged ? both.staged : both.copied;
          const double median = summarize(series.slowest).median;
          least = least > 0 ? std::min(least, median) : median;
        }
      }
  found.bytes = best_staged_bytes(times);
  return found;
}

}  // namespace chorale::bench
