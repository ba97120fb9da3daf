// Prices of the calls of a step, by the machine file. A negative price: the file has none for this call.
#pragma once
#include "collectives/selection.hpp"

namespace chorale {

// The price of a collective that runs the chosen algorithm.
double seconds_of(const Selector& selector, const std::string& backend, const Choice& choice, const Problem& problem,
                  DType dtype);

struct MessagePrice {
  double seconds = -1;
  bool waits = true;  // long messages move only when both ends have begun
};

MessagePrice price_of_message(const Machine& machine, const std::string& backend, std::int64_t bytes, bool across_hosts);

}  // namespace chorale
