// The loops of exact numerics on a device. The results are bit-identical to the results on the host (src/math/exact),
// because the f32 chains and the rounding to integer units are the same. The order of integer sums does not matter, so these
// sums use atomics.
#pragma once
#include <optional>
#include <vector>

#include "src/math/cuda/device.cuh"
#include "src/math/cuda/reduce_block.cuh"
#include "src/math/exact/fixed_point.hpp"
#include "src/math/exact/kernels.hpp"

namespace chorale::cuda {

// The largest addend of each site (SumSite, a point in the model at which values are summed). Each site has a 32-bit word on
// the device. Kernels update these words with atomic maxima, and the next collect() copies all words to the host.
class Watermarks {
 public:
  std::uint32_t* of(SumSite& site, const Queue& queue);  // returns the site's word, for a kernel on this queue
  void collect(SumSite& site);                           // raises the site's `highest` to the largest addend so far

 private:
  void fetch();
  static constexpr std::int64_t most_sites = 1 << 14;
  std::optional<Scratch<std::uint32_t>> words_;  // allocated by the first kernel
  std::vector<std::uint32_t> seen_;              // fetched values; collect() sets the value of its site to 0
  Queue queue_;                                  // the queue of the kernels that update the words
  bool raised_ = false;                          // whether kernels might have updated words since the last fetch
};

// The values that a kernel needs to round the addends of a site: the factor 2^e and the site's word.
struct DeviceRounding {
  float scale;
  std::uint32_t* highest;
};

// Rounds the addends of one thread.
class Rounder {
 public:
  __host__ __device__ explicit Rounder(const DeviceRounding& rounding) : rounding_(rounding) {}

  __device__ std::uint64_t whole(float value) {
    const float y = value * rounding_.scale;
    seen_ = Greater{}(seen_, std::bit_cast<std::uint32_t>(y) & 0x7fffffffu);
    return static_cast<std::uint64_t>(__float2ll_rn(y));
  }

  // All lanes of a warp must call this function at the end of the kernel. If the site's word is already at least as large as
  // the warp's largest addend, the call costs one read and no atomic operation.
  __device__ void report() const {
    const std::uint32_t seen = over_warp(seen_, Greater{});
    if (threadIdx.x % warp == 0 && seen > *static_cast<volatile std::uint32_t*>(rounding_.highest))
      atomicMax(rounding_.highest, seen);
  }

 private:
  DeviceRounding rounding_;
  std::uint32_t seen_ = 0;
};

__device__ inline void add_whole(std::int64_t* sum, std::uint64_t whole) {
  atomicAdd(reinterpret_cast<unsigned long long*>(sum), static_cast<unsigned long long>(whole));
}

class ExactKernels final : public exact::Kernels {
 public:
  // attention_gradient.cu
  void attention_backward(const AttentionInput& in, const Tensor& dout, const Tensor& out, const Tensor& lse,
                          const Tensor& dqkv, const KeyRows& dkeys, std::int64_t leaf, SumSite& site,
                          const Queue& queue) override;

  // exact_products.cu
  void product(const exact::Operands& operands, const Tensor* bias, const Tensor& y, const Queue& queue) override;
  void sum_blocks(const exact::Operands& operands, std::span<const std::int64_t> blocks, bool onto, const Tensor& sums,
                  SumSite& site, const Queue& queue) override;
  void settle(const Tensor& partial, const Tensor& y, float unit, const Queue& queue) override;

  // exact_sums.cu
  void add_columns(const Tensor& dy, const Tensor& db, SumSite& site, const Queue& queue) override;
  void add_norm_gradients(const Tensor& dy, const Tensor& x, const Tensor& stats, const Tensor& dgain, const Tensor* dshift,
                          SumSite& site, const Queue& queue) override;
  void add_rows(const Tensor& ids, std::int64_t first, const Tensor& dy, const Tensor& table, SumSite& site,
                const Queue& queue) override;
  void sum_exponentials(const Tensor& logits, const Tensor& maxima, const Tensor& sums, SumSite& site,
                        const Queue& queue) override;
  void add_losses(const Tensor& losses, const Tensor& total, SumSite& site, const Queue& queue) override;

  // exact.cu
  __int128 squares(std::span<const ScaledSlice> gradients, const Queue& queue) override;
  void collect(SumSite& site) override { watermarks_.collect(site); }

 private:
  DeviceRounding rounding(SumSite& site, const Queue& queue) {
    return {static_cast<float>(1 / exact::unit(site)), watermarks_.of(site, queue)};
  }
  Watermarks watermarks_;
};

}  // namespace chorale::cuda
