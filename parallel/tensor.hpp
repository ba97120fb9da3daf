// Tensor parallelism (Shoeybi et al. 2019) and sequence parallelism (Korthikanti et al. 2022): how the ranks of the tensor axis meet at the
// ends of the layers that they share. f and g are the paper's names.
//
//   tensor      x ─ f ─▶ columns ─ … ─ rows ─ g ─▶ y        f: nothing; back, all-reduce        g: all-reduce; back, nothing
//   sequence    x/t ─ gather ─▶ columns ─ … ─ rows ─ scatter ─▶ y/t        back: reduce-scatter; gather (and x again, for dW)
//
// Elements sent per layer, rank and micro-batch with ring: 8·b·s·h·(t−1)/t; 10 with sequence parallelism. The all-reduce of dx is under
// way while dW is computed. A row of the embedding is on one rank: bits are added, so that not even a −0 is lost. Of the head's logits
// only a maximum, a sum and a hit per token go around.
#pragma once
#include "layers/shard_boundary.hpp"
#include "parallel/axis.hpp"

namespace chorale {

class TensorParallel : public ShardBoundary {
 public:
  // Partitioned: each rank keeps its rows of what is computed twice.
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
  explicit SequenceParallel(Axis& axis) : TensorParallel(axis) {}  // what is kept is a part already
  Tensor whole(const Tensor& x, Context& context) const override;
  std::function<Tensor()> start_sum(const Tensor& partial, SumSite& site, Context& context) const override;
  Tensor pick(const Tensor& rows, Context& context) const override;
  std::int64_t rows(std::int64_t all) const override { return all / axis_.size(); }
  std::int64_t first_row(std::int64_t all) const override { return rows(all) * axis_.rank(); }
};

}  // namespace chorale
