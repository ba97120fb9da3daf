// Predicts the time of a call from the prices of a machine file. The prediction converts the schedules of all ranks to a
// graph of work items (work.hpp).
//
//   mapped memory     the receiver reads the sender's memory: one pass over shared memory, no message
//   messages          LogGP: both ends spend time on a message; the receiver copies it; long messages wait for both ends
//   between hosts     like messages, but all ranks of a host share the host's link
//
// docs/prediction.md explains the model and its limits.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include <chorale/element.hpp>
#include <chorale/schedule.hpp>
#include "collectives/prediction/prices.hpp"
#include "collectives/prediction/work.hpp"

namespace chorale::prediction {

// mapped() predicts the time of a call on mapped memory, in seconds. messages() predicts the time of a call that sends
// messages, in seconds. `within`: the prices of messages within a host. `between`: the prices of messages between hosts. If
// there are several hosts, all prices that do not concern messages come from `between`; otherwise they come from `within`.
// With `beside`, the time is that of the call and this work together.
double mapped(const std::vector<Schedule>& ranks, std::int64_t element_bytes, const Site& site, const Prices& within,
              const WorkBeside& beside = {});
double messages(const std::vector<Schedule>& ranks, std::int64_t element_bytes, const Site& site, const Prices& within,
                const Prices& between, const WorkBeside& beside = {});

inline constexpr int most_ranks = 63;  // the maximum number of ranks, because Caches has one bit per core

// Returns the level (the set of prices) that was measured with the most similar numbers of ranks and hosts. Returns null if
// the machine file has no suitable level. Level documents `span`.
const Level* nearest(const Machine& machine, const std::string& backend, const std::string& span, int ranks, int hosts);

// Returns the ratio of two times: the time per byte in which a core adds values of this type, divided by the time per byte
// in which it adds f32 values. Returns 1 if the machine file lacks one of the two rates.
double slowness(const Machine& machine, DType dtype);

// Predicts the time of a call in seconds, from the machine file. Returns nothing if the file lacks prices of this backend.
// `host_of` lists the host of each rank; if it is empty, all ranks are on one host.
std::optional<double> predict(const Machine& machine, const std::string& backend, bool maps_memory,
                              const std::vector<Schedule>& ranks, std::int64_t element_bytes,
                              const std::vector<int>& host_of, double slowness = 1, const WorkBeside& beside = {});

}  // namespace chorale::prediction
