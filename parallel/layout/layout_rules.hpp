// The rules that a layout must satisfy: world, heads, experts, layers, batch, schedule, sequence. A rule says what is wrong
// in two lines of an error; the third line suggests other layouts (layout.cpp).
#pragma once
#include <optional>
#include <string>

#include "parallel/layout/layout.hpp"

namespace chorale {

struct Misfit {
  std::string what, numbers;
  std::string remedy = {};  // what helps besides another layout
};
using MaybeMisfit = std::optional<Misfit>;

// The first rule that the layout breaks; nullopt if it satisfies all. Sizes that can be inferred must have been.
MaybeMisfit misfit_of(const Layout& layout, const LayoutLimits& limits);
// Only the rule of context parallelism for heads, if one host has all ranks of a sequence.
MaybeMisfit misfit_of_heads(const ContextOptions& context, const ModelShape& shape, const Layout& layout);
// Only the rule for schemes of context parallelism that need all samples to be cut alike.
MaybeMisfit misfit_of_cut(const ContextOptions& context, const ModelShape& shape, const Layout& layout);
// The values of context.inner that this rule accepts, ascending. 1 is always among them.
std::vector<std::int64_t> fitting_inner(const ModelShape& shape, const Layout& layout);
// Only the first of these rules: an axis whose size could not be inferred.
MaybeMisfit check_rest(const Layout& layout, std::int64_t world);
// Only the rules of rep and hpz: without ZeRO there are no shards to repeat, and hpz needs several groups under ZeRO-3.
MaybeMisfit check_repeats(const Layout& layout);

// The number of sequences that all replicas process at once. The batch must be a multiple of it.
std::int64_t batch_unit(const Layout& layout, const LayoutLimits& limits);

}  // namespace chorale
