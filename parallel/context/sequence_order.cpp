#include "parallel/context/sequence_order.hpp"

namespace chorale {
namespace {

Tensor reordered(const Tensor& x, const TokenCut& cut, std::int64_t samples, bool to_ranks, Category category,
                 Context& context) {
  if (samples == 1 && cut.in_order()) return x;
  const Tensor y = context.typed(x.shape(), x.dtype(), category);
  std::int64_t of_rank = 0;  // the first row of the rank
  for (std::int64_t rank = 0; rank < cut.ranks(); of_rank += samples * cut.tokens(rank), ++rank)
    for (std::int64_t sample = 0; sample < samples; ++sample)
      for (const TokenRun& run : cut_of(sample, cut, context).runs(rank)) {
        const std::int64_t there = of_rank + sample * cut.tokens(rank) + run.row;
        const std::int64_t here = sample * cut.sequence() + run.first;
        copy(x.narrow(to_ranks ? here : there, run.count).slice(), y.narrow(to_ranks ? there : here, run.count).slice());
      }
  return y;
}

}  // namespace

std::vector<std::int64_t> rows_of_ranks(const TokenCut& cut, std::int64_t samples) {
  std::vector<std::int64_t> rows;
  for (std::int64_t rank = 0; rank < cut.ranks(); ++rank) rows.push_back(samples * cut.tokens(rank));
  return rows;
}

Tensor by_sequence(const Tensor& x, const TokenCut& cut, std::int64_t samples, Context& context, Category category) {
  return reordered(x, cut, samples, false, category, context);
}

Tensor by_rank(const Tensor& x, const TokenCut& cut, std::int64_t samples, Context& context) {
  return reordered(x, cut, samples, true, Category::workspace, context);
}

Tensor gathered(const Tensor& own, Axis& axis, const TokenCut& cut, Context& context) {
  const std::int64_t samples = own.dim(0) / cut.tokens(axis.rank());
  const Tensor all = context.typed({samples * cut.sequence(), own.dim(1)}, own.dtype(), Category::workspace);
  axis.all_gather(own, all, rows_of_ranks(cut, samples));
  return by_sequence(all, cut, samples, context);
}

}  // namespace chorale
