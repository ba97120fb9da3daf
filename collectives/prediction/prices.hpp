// The prices of the parts of a call, in seconds or in seconds per byte. `chorale tune --calibrate` writes prices to a
// machine file. Users can also write a machine file manually. A machine file has rates in B/s instead of times per byte
// (src/base/machine_file.hpp).
#pragma once

#include "src/base/machine_file.hpp"

namespace chorale::prediction {

// A Curve holds the time per byte, in seconds, for each entry of `footprints`. The footprint is the number of bytes that a
// core accesses in a call. Between the listed footprints, prices are interpolated on logarithmic scales. Below the first and
// above the last footprint, the price is constant.
using Curve = std::array<double, footprints.size()>;
double at(const Curve& curve, double footprint);

struct Prices {
  double call = 0;       // seconds per call, in addition to the call's steps
  double step = 0;       // seconds that a core spends on a step
  double message = 0;    // seconds that each end's core spends on a message
  double latency = 0;    // seconds until a different rank sees a step or a message
  double handshake = 0;  // seconds of extra delay for a message longer than `eager_bytes`
  double turn = 0;       // seconds that a core needs to switch to a different rank
  Curve touch{};         // seconds per loaded or stored byte that is in the core's own caches or in no cache
  Curve cross{};         // seconds per loaded or stored byte that is in a different core's caches
  double cross_sum = 0;  // seconds per added byte from a different core's caches, in addition to `cross`
  double sum = 0;        // seconds per added byte
  double copy = 0;       // seconds per byte of a received message, or of data copied to or from a flag page
  double eager = 0;      // seconds per byte for the sender's copy of a message of up to `eager_bytes`
  double eager_bytes = 0;
  double link = 0;   // seconds per byte on a host's link, in each direction
  double burst = 0;  // number of bytes that an idle link transfers without delay
};

Prices prices_of(const Level& level);  // prices that the level lacks are set to 0
// Copies a price to the level only if all its values are above 0.
void set_prices(Level& level, const Prices& prices);

// Returns the values of `prices` that have this key in a machine file. Throws if there is no such key.
std::span<double> values(Prices& prices, const std::string& key);

}  // namespace chorale::prediction
