// The time of a call by the prices of a machine file: the schedules of all ranks become a graph of the work that the
// executor does (work.hpp).
//
//   mapped memory     a receiver reads the sender's memory: no message, but one pass over memory that the ranks share
//   messages          LogGP: both ends spend time on a message, the receiver copies it; long ones wait for both ends
//   between hosts     messages, and all ranks of a host share its link
//
// docs/machine_file.md explains what is modelled, and what is not.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "collectives/forecast/prices.hpp"
#include "collectives/forecast/work.hpp"
#include "collectives/schedule/schedule.hpp"
#include "src/memory/dtype.hpp"

namespace chorale::forecast {

// Seconds of a call on mapped memory, and as messages. `within`: prices between ranks of one host; `between`: prices between
// hosts. With several hosts, all other prices are also those of `between`.
double mapped(const std::vector<Schedule>& ranks, std::int64_t element_bytes, const Site& site, const Prices& within);
double messages(const std::vector<Schedule>& ranks, std::int64_t element_bytes, const Site& site, const Prices& within,
                const Prices& between);

inline constexpr int most_ranks = 63;  // more are not predicted: Caches has one bit for each core

// The level of the machine file whose run was most like a run of these ranks; null if there is none. `span`: see Level.
const Level* nearest(const Machine& machine, const std::string& backend, const std::string& span, int ranks, int hosts);

// How many times as long a core takes to add values of this type as f32 values, per byte; 1 if the file does not say.
double slowness(const Machine& machine, DType dtype);

// The machine file's prediction; nothing if it lacks the prices of this backend. `host_of`: by rank; empty: one host.
std::optional<double> predict(const Machine& machine, const std::string& backend, bool maps_memory,
                              const std::vector<Schedule>& ranks, std::int64_t element_bytes,
                              const std::vector<int>& host_of, double slowness = 1);

}  // namespace chorale::forecast
