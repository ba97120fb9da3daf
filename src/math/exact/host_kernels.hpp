// The loops of exact numerics on the host's threads. Each thread first checks that it uses IEEE default arithmetic.
#pragma once
#include "src/math/exact/kernels.hpp"

namespace chorale::exact {

class HostKernels final : public Kernels {
 public:
  // products.cpp
  void product(const Operands& operands, const Tensor* bias, const Tensor& y, const Queue& queue) override;
  void sum_blocks(const Operands& operands, std::span<const std::int64_t> blocks, bool onto, const Tensor& sums,
                  SumSite& site, const Queue& queue) override;
  void settle(const Tensor& partial, const Tensor& y, float unit, const Queue& queue) override;

  // attention.cpp
  void attention_backward(const AttentionInput& in, const Tensor& dout, const Tensor& out, const Tensor& lse,
                          const Tensor& dqkv, const KeyRows& dkeys, std::int64_t leaf, SumSite& site,
                          const Queue& queue) override;

  // sums.cpp
  void add_columns(const Tensor& dy, const Tensor& db, SumSite& site, const Queue& queue) override;
  void add_norm_gradients(const Tensor& dy, const Tensor& x, const Tensor& stats, const Tensor& dgain, const Tensor* dshift,
                          SumSite& site, const Queue& queue) override;
  void add_rows(const Tensor& ids, std::int64_t first, const Tensor& dy, const Tensor& table, SumSite& site,
                const Queue& queue) override;
  void sum_exponentials(const Tensor& logits, const Tensor& maxima, const Tensor& sums, SumSite& site,
                        const Queue& queue) override;
  void add_losses(const Tensor& losses, const Tensor& total, SumSite& site, const Queue& queue) override;

  __int128 squares(std::span<const ScaledSlice> gradients, const Queue& queue) override;  // square_sum.cpp

  void collect(SumSite&) override {}
};

}  // namespace chorale::exact
