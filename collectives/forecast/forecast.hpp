// Predicts the time of a call from the prices of a machine file. The prediction converts the schedules of all ranks to a
// graph of the executors' work (work.hpp).
//
//   mapped memory     the receiver reads the sender's memory: no message, but one pass over shared memory
//   messages          LogGP: both ends spend time on a message; the receiver copies it; long messages wait for both ends
//   between hosts     like messages, but all ranks of a host share the host's link
//
// docs/machine_file.md explains the model and its limits.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include <chorale/element.hpp>
#include <chorale/schedule.hpp>
#include "collectives/forecast/prices.hpp"
#include "collectives/forecast/work.hpp"

namespace chorale::forecast {

// mapped() returns the seconds of a call on mapped memory, and messages() returns the seconds of a call that sends messages.
// `within`: the prices of messages within a host. `between`: the prices of messages between hosts. If there are several
// hosts, all prices that do not concern messages come from `between`; otherwise they come from `within`.
double mapped(const std::vector<Schedule>& ranks, std::int64_t element_bytes, const Site& site, const Prices& within);
double messages(const std::vector<Schedule>& ranks, std::int64_t element_bytes, const Site& site, const Prices& within,
                const Prices& between);

inline constexpr int most_ranks = 63;  // more ranks are not predicted, because Caches has one bit per core

// Returns the level (the set of prices) that was measured with the most similar numbers of ranks and hosts. Returns null if
// the machine file has no suitable level. `span`: see Level.
const Level* nearest(const Machine& machine, const std::string& backend, const std::string& span, int ranks, int hosts);

// Returns a core's time per byte to add values of this type, divided by the time for f32. Returns 1 if the machine file
// lacks a rate.
double slowness(const Machine& machine, DType dtype);

// Predicts the seconds of a call from the machine file; returns nothing if the file lacks prices of this backend. `host_of`:
// the host of each rank; empty: one host.
std::optional<double> predict(const Machine& machine, const std::string& backend, bool maps_memory,
                              const std::vector<Schedule>& ranks, std::int64_t element_bytes,
                              const std::vector<int>& host_of, double slowness = 1);

}  // namespace chorale::forecast
