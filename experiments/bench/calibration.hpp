// `chorale tune --calibrate`: measures what this machine can do, and writes it to the machine file
// (src/base/machine_file.hpp).
//
//   peaks and sums   on rank 0, while the other ranks sleep
//   calls            every algorithm at a few sizes, with the code of `bench`
//   prices           fitted to the calls, by backend (collectives/forecast/fit.hpp)
//
// The prices hold for runs like this one: on one host or on several, with about as many ranks. With several hosts, most of a
// call's time is spent on the network, so the calls say little about the prices within a host. Those prices come from an
// earlier run on one host, if there was one.
//
// Calls are ignored if the distance between the cores was unusual just before them (barrier_time.hpp).
#pragma once
#include <string>

#include "collectives/forecast/work.hpp"
#include "experiments/bench/sweep.hpp"
#include "src/base/machine_file.hpp"

namespace chorale::bench {

// Collective. Prints what it found, and returns whether it was complete. If a signal stops it, the file stays as it was.
bool calibrate(const Sweep& sweep, const Session& session, const std::filesystem::path& file);

// How fast one core adds two vectors of this type that fit into its caches.
SumRate measure_sum(DType dtype, Clock& clock);

// The levels of one backend, fitted to its series, whose ranks ran at `site`. `known` has the prices of earlier runs. `tick`
// is called at each step of the fit. Returns no levels if no series can be fitted, or if `tick` returned false.
std::vector<Level> levels_of(const std::vector<Series>& series, const forecast::Site& site, const Machine& known,
                             const std::function<bool()>& tick);

}  // namespace chorale::bench
