#include "experiments/bench/winner.hpp"

#include <algorithm>

#include "experiments/common/each.hpp"
#include "experiments/common/statistics.hpp"

namespace chorale::bench {

Tuned winner_of(const std::vector<const Series*>& series, const Choice& usual) {
  struct Timed {
    const BenchCase* row;
    Typical time;
  };
  const std::vector<Typical> times = typical_times(each(series, &Series::slowest));
  std::vector<Timed> timed;
  for (std::size_t i = 0; i < series.size(); ++i) timed.push_back({&series[i]->row, times[i]});
  std::ranges::stable_sort(timed, {}, [](const Timed& one) { return one.time.seconds; });

  const auto kept = std::ranges::find_if(timed, [&](const Timed& one) {
    return one.row->algorithm == usual.algorithm && one.row->chunks == usual.chunks && one.time.low <= timed[0].time.high;
  });
  const Timed chosen = kept != timed.end() ? *kept : timed[0];
  const BenchCase& row = *chosen.row;
  Tuned tuned{row.backend,   row.what,   row.ranks,           row.in_place, row.bytes(),
              row.algorithm, row.chunks, chosen.time.seconds, "",           1};
  tuned.hosts = number_of_hosts(row.hosts);
  const auto rival = std::ranges::find_if(timed, [&](const Timed& one) { return one.row->algorithm != row.algorithm; });
  if (rival == timed.end()) return tuned;
  tuned.runner_up = rival->row->algorithm;
  tuned.ratio = rival->time.seconds / chosen.time.seconds;
  tuned.ratio_low = rival->time.low / chosen.time.high;
  tuned.ratio_high = rival->time.high / chosen.time.low;
  return tuned;
}

}  // namespace chorale::bench
