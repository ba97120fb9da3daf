// The price of a call is its predicted time, computed from the machine file. The price is negative if the file has no data
// for the call.
#pragma once
#include "collectives/choice/decision.hpp"
#include "collectives/choice/selection.hpp"
#include "parallel/mesh/script.hpp"

namespace chorale {

struct CallPrice {
  double seconds = -1;
  double link = 0;    // time, in seconds, for which this rank's bytes to other hosts occupy the link of this rank's host
  bool waits = true;  // true if a message's transfer starts only when sender and receiver have begun the call (rendezvous)
};

// Returns the price of a collective with the chosen algorithm. `crossing` is the number of bytes that this rank sends to
// other hosts.
CallPrice price_of_call(const Selector& selector, const std::string& backend, const Choice& choice, const Problem& problem,
                        DType dtype, std::int64_t crossing);

// Returns the bytes and messages that rank `rank` of the group sends in a call, and the bytes that all ranks of its host
// send to other hosts.
CallVolume volume_of_call(const Decision& decision, const Problem& problem, DType dtype, int rank);

CallPrice price_of_message(const Machine& machine, const std::string& backend, std::int64_t bytes, bool across_hosts);

}  // namespace chorale
