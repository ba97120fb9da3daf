// The price of a call is its predicted time, computed from the machine file. The price is negative if the file has no data
// for the call.
#pragma once
#include "collectives/choice/decision.hpp"
#include "collectives/choice/selection.hpp"
#include "parallel/mesh/script.hpp"

namespace chorale {

// Returns a collective of rank `rank`, with its price and its volume. `switches`: the leaf switch of each rank; if it is
// empty, all ranks are under one leaf switch.
Script::Call priced_call(const Selector& selector, const std::string& backend, const Decision& decision,
                         const Problem& problem, const std::vector<int>& switches, DType dtype, int rank);

// Returns the bytes and messages that rank `rank` of the group sends in a call. Also returns the bytes that all ranks of its
// host send to other hosts, and the bytes that all ranks under its leaf switch send to other leaf switches.
CallVolume volume_of_call(const Decision& decision, const Problem& problem, const std::vector<int>& switches, DType dtype,
                          int rank);

// Returns a message with its price and its volume.
Script::Call priced_message(const Machine& machine, const std::string& backend, std::int64_t bytes, bool across_hosts,
                            bool across_switches);

}  // namespace chorale
