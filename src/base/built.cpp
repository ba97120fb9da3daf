#include "src/base/built.hpp"

#include <utility>

#include "src/base/error.hpp"

namespace chorale {

std::string built(const std::string& fact) {
  static const std::pair<const char*, const char*> facts[] = {
#include "facts.stamp"
  };
  for (const auto& [name, value] : facts)
    if (fact == name) return value;
  require(false, "unknown build fact {}: the Makefile does not write it", fact);
  return "";
}

}  // namespace chorale
