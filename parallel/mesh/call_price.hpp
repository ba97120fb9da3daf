// Prices of the calls of a step, by the machine file. A negative price: the file has none for this call.
#pragma once
#include "collectives/choice/decision.hpp"
#include "collectives/choice/selection.hpp"
#include "parallel/mesh/script.hpp"

namespace chorale {

struct CallPrice {
  double seconds = -1;
  double link = 0;    // between hosts: seconds for which the bytes of this rank occupy its host's link
  bool waits = true;  // long messages move only when both ends have begun
};

// The price of a collective that runs the chosen algorithm. `crossing`: the bytes that this rank sends to other hosts.
CallPrice price_of_call(const Selector& selector, const std::string& backend, const Choice& choice, const Problem& problem,
                        DType dtype, std::int64_t crossing);

// The bytes and messages of a call on rank `rank` of the group, and the bytes that leave its host.
CallVolume volume_of_call(const Decision& decision, const Problem& problem, DType dtype, int rank);

CallPrice price_of_message(const Machine& machine, const std::string& backend, std::int64_t bytes, bool across_hosts);

}  // namespace chorale
