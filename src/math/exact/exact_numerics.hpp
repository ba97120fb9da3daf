// Numerics whose losses, gradients and weights are bit-identical on every layout of ranks, threads and micro-batches, and
// with every collective algorithm. Two rules guarantee this:
//
//   - A sum over tokens, shards or ranks is split into canonical blocks. The blocks depend on the model and the batch but
//     never on the layout. Each block is a chain of f32 operations in a fixed order (chains.hpp). Blocks are added as
//     integers (fixed_point.hpp), both locally and in collectives.
//   - If every rank that computes a sum has all addends of the sum, the sum is one chain.
//
// ExactNumerics checks shapes and types. The loops run on the host or on a device (kernels.hpp) and give bit-identical
// results.
//
// Compared with f32 sums, exact sums are slightly more accurate (chains are shorter) and 20 to 33 % slower. Partial sums and
// gradients take twice the memory.
#pragma once
#include "src/math/exact/kernels.hpp"

namespace chorale::exact {

class ExactNumerics final : public Numerics {
 public:
  explicit ExactNumerics(std::unique_ptr<Kernels> kernels) : kernels_(std::move(kernels)) {}

  const char* name() const override { return "exact"; }
  DType partial_type(DType compute) const override;
  DType gradient_type(DType compute) const override;

  void product(const Tensor& x, const Tensor& w, bool transposed, const Tensor* bias, const Tensor& y,
               const Queue& queue) override;
  void partial_product(const Tensor& x, const Tensor& w, bool transposed, std::int64_t block, const Tensor& y, SumSite& site,
                       const Queue& queue) override;
  void settle(const Tensor& partial, const Tensor& y, const SumSite& site, const Queue& queue) override;
  void add_outer(const Tensor& x, const Tensor& dy, const Leaves& leaves, const Tensor& dw, SumSite& site,
                 const Queue& queue) override;
  void add_outer_by_leaves(const Tensor& x, const Tensor& dy, std::span<const std::int64_t> leaves, const Tensor& dw,
                           SumSite& site, const Queue& queue) override;

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

  double unit(const SumSite& site) const override;
  void check(SumSite& site) const override;
  void add_squares(std::span<const ScaledSlice> gradients, SquareSum& sum, const Queue& queue) const override;
  double root(const SquareSum& sum) const override;

 private:
  std::unique_ptr<Kernels> kernels_;
};

}  // namespace chorale::exact
