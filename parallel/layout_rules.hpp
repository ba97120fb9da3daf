// The rules that a layout must satisfy: world, heads, experts, layers, batch, schedule, sequence. A rule says what is wrong
// in two lines of an error; the third line suggests other layouts (layout.cpp).
#pragma once
#include <optional>
#include <string>

#include "parallel/layout.hpp"

namespace chorale {

struct Misfit {
  std::string what, numbers;
  std::string remedy = {};  // what helps besides another layout
};
using MaybeMisfit = std::optional<Misfit>;

// The first rule that the layout breaks; nullopt if it satisfies all. Sizes that can be inferred must have been.
MaybeMisfit misfit_of(const Layout& layout, const LayoutLimits& limits);
// Only the rule of context parallelism for heads. If context.inner is 0, one host is assumed to have all context ranks.
MaybeMisfit misfit_of_heads(const ContextOptions& context, const ModelShape& shape, const Layout& layout);
// Only the first of these rules: an axis whose size could not be inferred.
MaybeMisfit check_rest(const Layout& layout, std::int64_t world);

// The number of sequences that all replicas process at once. The batch must be a multiple of it.
std::int64_t batch_unit(const Layout& layout, const LayoutLimits& limits);

}  // namespace chorale
