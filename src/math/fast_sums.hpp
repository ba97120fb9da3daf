// The sums of fast numerics. Derived classes add the matrix products, using oneDNN or cuBLASLt. Gradients are f32 (f64 if
// the model is f64), and partial sums have the type of the activations. check() does nothing, because a float that overflows
// becomes Inf.
#pragma once
#include "src/math/numerics.hpp"

namespace chorale {

class FastSums : public Numerics {
 public:
  const char* name() const override { return "fast"; }
  DType partial_type(DType compute) const override { return compute; }
  DType gradient_type(DType compute) const override { return compute == DType::f64 ? DType::f64 : DType::f32; }

  void partial_product(const Tensor& x, const Tensor& w, bool transposed, std::int64_t block, const Tensor& y, SumSite& site,
                       const Queue& queue) override;
  void add_outer_by_leaves(const Tensor& x, const Tensor& dy, std::span<const std::int64_t> leaves, const Tensor& dw,
                           SumSite& site, const Queue& queue) override;
  void settle(const Tensor& partial, const Tensor& y, const SumSite& site, const Queue& queue) override;
  void add_columns(const Tensor& dy, const Tensor& db, SumSite& site, const Queue& queue) override;
  void add_norm_gradients(NormKind kind, const Tensor& dy, const Tensor& x, const Tensor& stats, const Tensor& dgain,
                          const Tensor* dshift, SumSite& site, const Queue& queue) override;
  void add_rows(const Tensor& ids, std::int64_t first, const Tensor& dy, const Tensor& table, SumSite& site,
                const Queue& queue) override;
  void attention_backward(const AttentionInput& in, const Tensor& dout, const Tensor& out, const Tensor& lse,
                          const Tensor& dqkv, const KeyRows& dkeys, std::int64_t leaf, SumSite& site,
                          const Queue& queue) override;
  void sum_exponentials(const Tensor& logits, const Tensor& maxima, const Tensor& sums, SumSite& site,
                        const Queue& queue) override;
  void add_losses(const Tensor& losses, const Tensor& total, SumSite& site, const Queue& queue) override;

  double unit(const SumSite&) const override { return 1; }
  void add_squares(std::span<const ScaledSlice> gradients, SquareSum& sum, const Queue& queue) const override;
  double root(const SquareSum& sum) const override;
  void check(SumSite&) const override {}
};

}  // namespace chorale
