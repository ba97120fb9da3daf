// Predicts the time of a call from the prices of a machine file. The schedules of all ranks are converted to a graph of the
// executor's work (work.hpp).
//
//   mapped memory     a receiver reads the sender's memory: no message, but one pass over memory that the ranks share
//   messages          LogGP: both ends spend time on a message; the receiver copies it; long messages wait for both ends
//   between hosts     messages, and all ranks of a host share its link
//
// docs/machine_file.md explains what is modeled and what is not.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include <chorale/element.hpp>
#include <chorale/schedule.hpp>
#include "collectives/forecast/prices.hpp"
#include "collectives/forecast/work.hpp"

namespace chorale::forecast {

// The seconds of a call on mapped memory, and of a call that sends messages. `within`: the prices of messages between ranks
// of one host. `between`: the prices of messages between hosts and, if there are several hosts, all other prices.
double mapped(const std::vector<Schedule>& ranks, std::int64_t element_bytes, const Site& site, const Prices& within);
double messages(const std::vector<Schedule>& ranks, std::int64_t element_bytes, const Site& site, const Prices& within,
                const Prices& between);

inline constexpr int most_ranks = 63;  // calls with more ranks are not predicted, because Caches has one bit per core

// The machine-file level that was measured by the run most similar to a run of these ranks; null if there is none. `span`:
// see Level.
const Level* nearest(const Machine& machine, const std::string& backend, const std::string& span, int ranks, int hosts);

// The time that a core takes per byte to add values of this type, divided by the time for f32; 1 if the file does not say.
double slowness(const Machine& machine, DType dtype);

// The machine file's prediction; nothing if it lacks the prices of this backend. `host_of`: the host of each rank; empty:
// one host.
std::optional<double> predict(const Machine& machine, const std::string& backend, bool maps_memory,
                              const std::vector<Schedule>& ranks, std::int64_t element_bytes,
                              const std::vector<int>& host_of, double slowness = 1);

}  // namespace chorale::forecast
