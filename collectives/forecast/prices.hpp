// The prices of the parts of a call: seconds, or seconds per byte. A machine file, which `chorale tune --calibrate` or a
// person has written, has their inverses in B/s instead of seconds per byte (src/base/machine_file.hpp).
#pragma once
#include <cstdint>

#include "src/base/machine_file.hpp"

namespace chorale::forecast {

// Seconds per byte for each footprint: the number of bytes that a core touches in a call. Between these numbers, it is
// interpolated on logarithmic scales; beyond them, it is constant.
using Curve = std::array<double, footprints.size()>;
double at(const Curve& curve, double footprint);

struct Prices {
  double call = 0;       // seconds that a call takes beside its steps
  double step = 0;       // seconds that a core spends on a step
  double message = 0;    // seconds that a core spends on a message, at each end
  double latency = 0;    // seconds until another rank sees a step or a message
  double handshake = 0;  // seconds by which a message longer than `eager_bytes` is delayed
  double turn = 0;       // seconds for which a core is lost when it turns to another rank
  Curve touch{};         // seconds per byte that a core loads or stores, if its caches hold it or no core's caches do
  Curve cross{};         // seconds per byte that a core loads or stores, if another core's caches hold it
  double cross_sum = 0;  // seconds per byte, beside `cross`, if a core adds what another core's caches hold
  double sum = 0;        // seconds per byte that is added to another
  double copy = 0;       // seconds per byte of a message, or that goes through a flag page of mapped memory, at each end
  double eager = 0;      // seconds per byte that a sender copies, up to `eager_bytes`
  double eager_bytes = 0;
  double link = 0;   // seconds per byte on a host's link, in each direction
  double burst = 0;  // bytes that a link which was idle carries at once
};

Prices prices_of(const Level& level);  // prices that the level lacks are 0
// Sets a level's prices, but only those that are above 0.
void set_prices(Level& level, const Prices& prices);

// The numbers of `prices` that have this key in a machine file. Throws if there is no such key.
std::span<double> values(Prices& prices, const std::string& key);

}  // namespace chorale::forecast
