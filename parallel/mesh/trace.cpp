#include "parallel/mesh/trace.hpp"

namespace chorale {

void Trace::record(std::int64_t first, std::int64_t last, std::int64_t most) {
  first_ = first;
  last_ = last;
  most_ = most;
}

void Trace::over(std::int64_t call, double waited, double ends) {
  if (call < 0) return;
  calls_[static_cast<std::size_t>(call)].waited = waited;
  calls_[static_cast<std::size_t>(call)].ends = ends;
}

}  // namespace chorale
