// Measures a row of a benchmark on threads.
#pragma once
#include <utility>

#include "collectives/backends/threads.hpp"
#include "experiments/bench/measure.hpp"
#include "tests/spmd.hpp"

namespace chorale::test {

// Every thread calls act(team, world). Returns the series of rank 0.
template <class Act>
bench::Series bench_on_threads(int ranks, const Act& act) {
  SystemClock clock;
  ThreadWorld threads(ranks);
  bench::Crew crew(ranks, clock);
  bench::Series series;
  on_threads(ranks, [&](ThreadRank& me) {
    bench::ThreadTeam team(crew, me.rank());
    Communicator world = open_world(threads.transport(me.rank()), clock);
    bench::Series mine = act(team, world);
    if (me.rank() == 0) series = std::move(mine);
  });
  return series;
}

}  // namespace chorale::test
