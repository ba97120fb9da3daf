// The rules that a layout must satisfy. The rules concern the number of ranks, ZeRO, heads, experts, stages, the batch, the
// schedule, context parallelism and sequence parallelism. If a layout breaks a rule, the rule provides the first two lines
// of the error, which describe the problem. The third line suggests other layouts (layout.cpp).
#pragma once
#include <optional>
#include <string>

#include "parallel/layout/layout.hpp"

namespace chorale {

struct Misfit {
  std::string what, numbers;
  std::string remedy = {};  // a change that makes the layout fit, without changing the layout itself
};
using MaybeMisfit = std::optional<Misfit>;

// The first rule that the layout breaks; nullopt if the layout satisfies all rules. Missing sizes must have been inferred
// before.
MaybeMisfit misfit_of(const Layout& layout, const LayoutLimits& limits);
// Checks only how context-parallel ranks divide heads. Assumes that all ranks that share a sequence are on one host.
MaybeMisfit misfit_of_heads(const ContextOptions& context, const ModelShape& shape, const Layout& layout);
// Checks only one rule: some context-parallel schemes require that the ranks divide all samples in the same way.
MaybeMisfit misfit_of_cut(const ContextOptions& context, const ModelShape& shape, const Layout& layout);
// The values of context.inner that misfit_of_heads accepts, in ascending order. These values always include 1.
std::vector<std::int64_t> fitting_inner(const ModelShape& shape, const Layout& layout);
// Checks only that all sizes could be inferred.
MaybeMisfit check_rest(const Layout& layout, std::int64_t world);
// Checks only the rules of rep and hpz: without ZeRO there are no shards to repeat, and hpz needs ZeRO-3 and several groups.
MaybeMisfit check_repeats(const Layout& layout);

// The total number of sequences in one micro-batch of all replicas. The global batch must be a multiple of this number.
std::int64_t batch_unit(const Layout& layout, const LayoutLimits& limits);

}  // namespace chorale
