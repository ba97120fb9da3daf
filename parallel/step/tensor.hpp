// Tensor parallelism (Shoeybi et al. 2019) and sequence parallelism (Korthikanti et al. 2022): the communication of
// tensor-parallel ranks at the boundaries of shared layers. The papers call these boundaries f and g.
//
//   tensor      x ─ f ─▶ columns ─ … ─ rows ─ g ─▶ y         forward:  f nothing, g all-reduce
//                                                            backward: g nothing, f all-reduce
//   sequence    x/t ─ f ─▶ columns ─ … ─ rows ─ g ─▶ y/t     forward:  f all-gather, g reduce-scatter
//                                                            backward: g all-gather, f reduce-scatter
//
// A micro-batch has b sequences of s tokens, and the model has width h. With ring algorithms and t ranks, a rank sends
// 8·b·s·h·(t−1)/t elements per block and micro-batch. With sequence parallelism, the factor is 10 instead of 8, because the
// ranks gather x again for dW. The sum of dx over ranks overlaps the computation of dW.
//
// Each row of the embedding table is on one rank. For a token, this rank contributes the row, and all other ranks contribute
// zeros. The ranks add the bit patterns as integers, so that even the sign of −0 is preserved. For the loss, the ranks
// exchange three values per token instead of the logits: the maximum, the sum of exponentials and the logit of the target
// (the "hit").
#pragma once
#include "layers/shard_boundary.hpp"
#include "parallel/mesh/axis.hpp"

namespace chorale {

class TensorParallel : public ShardBoundary {
 public:
  // partitioned: whether the ranks divide the rows of the activations that full recomputation keeps.
  explicit TensorParallel(Axis& axis, bool partitioned = false) : axis_(axis), partitioned_(partitioned) {}
  std::function<Tensor()> start_sum(const Tensor& partial, SumSite& site, Context& context) const override;
  Tensor pick(const Tensor& rows, Context& context) const override;
  void greatest(const Tensor& x) const override;
  void add(const Tensor& sums, const Tensor& hits) const override;
  Tensor part(const Tensor& x, Context& context) const override;
  Tensor restored(const Tensor& part, Context& context) const override;
  std::int64_t kept_rows(std::int64_t all) const override { return partitioned_ ? all / axis_.size() : rows(all); }

 protected:
  Axis& axis_;
  bool partitioned_ = false;
};

class SequenceParallel : public TensorParallel {
 public:
  explicit SequenceParallel(Axis& axis) : TensorParallel(axis) {}  // kept activations are already split
  Tensor whole(const Tensor& x, Context& context) const override;
  std::function<Tensor()> start_sum(const Tensor& partial, SumSite& site, Context& context) const override;
  Tensor pick(const Tensor& rows, Context& context) const override;
  std::int64_t rows(std::int64_t all) const override { return all / axis_.size(); }
  std::int64_t first_row(std::int64_t all) const override { return rows(all) * axis_.rank(); }
};

}  // namespace chorale
