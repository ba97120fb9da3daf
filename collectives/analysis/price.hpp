// The cost parameters ("prices") of a backend in the α–β–γ model. The table of backends holds typical prices.
// analysis/cost.hpp computes the time of a schedule from these prices.
#pragma once

namespace chorale {

struct Price {
  double alpha = 0;  // seconds per message
  double beta = 0;   // seconds per byte
  double gamma = 0;  // seconds per reduced byte
};

}  // namespace chorale
