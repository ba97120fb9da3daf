// What a backend's messages cost in the α–β–γ model. A backend's row states what is usual, `chorale tune` fits it to this machine, and
// analysis/cost.hpp says how a schedule's time follows from it.
#pragma once

namespace chorale {

struct Price {
  double alpha = 0;  // seconds a message
  double beta = 0;   // seconds a byte
  double gamma = 0;  // seconds a reduced byte
};

}  // namespace chorale
