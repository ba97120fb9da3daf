#include "parallel/layout/asked_layout.hpp"

#include <fmt/format.h>

namespace chorale {

AskedLayout::WhyNot AskedLayout::zero_at_most(int stage) const {
  return [this, stage] { return asked().zero > stage ? fmt::format("the ZeRO stage is {}", asked().zero) : ""; };
}

AskedLayout::WhyNot AskedLayout::zero_3() const {
  return [this] { return all() || asked().zero == 3 ? "" : fmt::format("the ZeRO stage is {}", asked().zero); };
}

AskedLayout::WhyNot AskedLayout::has_more_than_one(std::int64_t (*ranks)(const Layout&), const char* otherwise) const {
  return [this, ranks, otherwise] { return all() || ranks(asked()) > 1 ? "" : otherwise; };
}

}  // namespace chorale
