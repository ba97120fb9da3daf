#include "src/math/numerics.hpp"

namespace chorale {

std::unique_ptr<Numerics> numerics_named(const std::string& name) {
  require(name == "fast" || name == "exact", "numerics must be fast or exact, not {}", name);
  return name == "exact" ? exact_numerics() : fast_numerics();
}

}  // namespace chorale
