#include <chorale/named.hpp>

#include <fmt/format.h>

#include <algorithm>

#include "src/base/error.hpp"
#include "src/base/text.hpp"

namespace chorale {

std::size_t index_of_name(const char* what, std::span<const char* const> names, const std::string& name) {
  const auto found = std::ranges::find(names, name);
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  const std::vector<std::string> all(names.begin(), names.end());
  usage_error(fmt::format("unknown {} \"{}\"", what, name), fmt::format("the {}s are {}", what, join(all, ", ")),
              did_you_mean(name, all, "choose one of these"));
}

}  // namespace chorale
