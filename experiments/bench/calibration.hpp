// `chorale tune --calibrate` measures the peaks of this machine and its prices (the costs of single operations, such as a
// copy), and writes both to the machine file (src/base/machine_file.hpp).
//
//   peaks and sums   on rank 0, while the other ranks sleep
//   calls            every algorithm at a few sizes, with the code of `bench`
//   prices           fitted to the calls, by backend (collectives/prediction/fit.hpp)
//
// The prices apply to runs with about as many ranks as this run. Prices from several hosts apply only to runs on several
// hosts. On several hosts, calls spend most of their time on the network, and thus reveal little about the prices within a
// host. The prices within a host are therefore taken from an earlier run on one host, if such a run exists.
//
// A series of calls is ignored if the barrier time just before the series was unusual (barrier_time.hpp).
#pragma once

#include "collectives/prediction/work.hpp"
#include "experiments/bench/sweep.hpp"
#include "src/base/machine_file.hpp"

namespace chorale::bench {

// Collective. Prints the measurements. If a signal stops the calibration, the file is not changed and the result is false.
bool calibrate(const Sweep& sweep, const Session& session, const std::filesystem::path& file);

// Measures how fast one core adds two vectors with elements of type `dtype`. The vectors fit into the core's caches.
SumRate measure_sum(DType dtype, Clock& clock);

// Fits the levels of one backend to its measured series. A level is a set of prices: the prices within a host, or the prices
// of the network. `site`: the hosts and machines of the ranks. `known`: the prices of earlier runs. `tick` is called at each
// step of the fit. Returns no levels if no series can be fitted, or if `tick` returned false.
std::vector<Level> levels_of(const std::vector<Series>& series, const prediction::Site& site, const Machine& known,
                             const std::function<bool()>& tick);

}  // namespace chorale::bench
