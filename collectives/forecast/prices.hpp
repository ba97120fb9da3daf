// The prices of the parts of a call: seconds, or seconds per byte. A machine file, written by `chorale tune --calibrate` or
// by hand, has rates in B/s instead of seconds per byte (src/base/machine_file.hpp).
#pragma once
#include <cstdint>

#include "src/base/machine_file.hpp"

namespace chorale::forecast {

// Seconds per byte for each footprint. The footprint is the number of bytes that a core touches in a call. Prices between
// these footprints are interpolated on logarithmic scales; beyond them, the price is constant.
using Curve = std::array<double, footprints.size()>;
double at(const Curve& curve, double footprint);

struct Prices {
  double call = 0;       // seconds that a call takes in addition to its steps
  double step = 0;       // seconds that a core spends on a step
  double message = 0;    // seconds that a core spends on a message, at each end
  double latency = 0;    // seconds until another rank sees a step or a message
  double handshake = 0;  // seconds by which a message longer than `eager_bytes` is delayed
  double turn = 0;       // seconds that a core loses when it switches to a different rank
  Curve touch{};  // seconds per byte that a core loads or stores, if the byte is in its own caches or in no core's caches
  Curve cross{};  // seconds per byte that a core loads or stores, if the byte is in another core's caches
  double cross_sum = 0;  // seconds per byte, in addition to `cross`, if a core adds a byte from another core's caches
  double sum = 0;        // seconds per added byte
  double copy = 0;       // seconds at each end, per byte of a message or of data on a flag page (mapped memory)
  double eager = 0;      // seconds per byte that a sender copies, up to `eager_bytes`
  double eager_bytes = 0;
  double link = 0;   // seconds per byte on a host's link, in each direction
  double burst = 0;  // bytes that an idle link carries at once
};

Prices prices_of(const Level& level);  // prices that the level lacks are 0
// Sets a level's prices, but only those that are above 0.
void set_prices(Level& level, const Prices& prices);

// The values of `prices` that have this key in a machine file. Throws if there is no such key.
std::span<double> values(Prices& prices, const std::string& key);

}  // namespace chorale::forecast
