// The loops of exact numerics on one processor: the host (host_kernels.hpp) or a device (src/math/cuda/exact.cuh).
// ExactNumerics has already checked that shapes and types fit, that no tensor is phantom (without storage), and that all
// tensors of a call are on one device.
//
// All implementations compute the same addends by the same operations in the same order and round them to integer units
// (fixed_point.hpp). The order in which the integers are added does not matter, so all implementations agree to the bit.
#pragma once
#include "src/math/numerics.hpp"

namespace chorale::exact {

// Element (i, k) of the left side is data[i·along + k·across], element (k, j) of the right side data[j·along + k·across].
// One of the two strides is 1.
template <class T>
struct SideOf {
  const T* data;
  std::int64_t along, across;
};
using Side = SideOf<float>;

// The two sides of y[rows, columns] = Σ over depth.
struct Operands {
  Side a, b;
  std::int64_t rows, columns, depth;
};

class Kernels {
 public:
  virtual ~Kernels() = default;

  // One chain over the whole depth per element, then the bias.
  virtual void product(const Operands& operands, const Tensor* bias, const Tensor& y, const Queue& queue) = 0;
  // sums = Σ over blocks of the depth, one chain per block; with `onto`, the result is added to the existing sums. `blocks`
  // lists the blocks' lengths, none of which is 0.
  virtual void sum_blocks(const Operands& operands, std::span<const std::int64_t> blocks, bool onto, const Tensor& sums,
                          SumSite& site, const Queue& queue) = 0;
  // `dkeys` holds integer sums, to which this function adds.
  virtual void attention_backward(const AttentionInput& in, const Tensor& dout, const Tensor& out, const Tensor& lse,
                                  const Tensor& dqkv, const KeyRows& dkeys, std::int64_t leaf, SumSite& site,
                                  const Queue& queue) = 0;
  virtual void settle(const Tensor& partial, const Tensor& y, float unit, const Queue& queue) = 0;

  // As in Numerics.
  virtual void add_columns(const Tensor& dy, const Tensor& db, SumSite& site, const Queue& queue) = 0;
  virtual void add_norm_gradients(const Tensor& dy, const Tensor& x, const Tensor& stats, const Tensor& dgain,
                                  const Tensor* dshift, SumSite& site, const Queue& queue) = 0;
  virtual void add_rows(const Tensor& ids, std::int64_t first, const Tensor& dy, const Tensor& table, SumSite& site,
                        const Queue& queue) = 0;
  virtual void sum_exponentials(const Tensor& logits, const Tensor& maxima, const Tensor& sums, SumSite& site,
                                const Queue& queue) = 0;
  virtual void add_losses(const Tensor& losses, const Tensor& total, SumSite& site, const Queue& queue) = 0;
  virtual __int128 squares(std::span<const ScaledSlice> gradients, const Queue& queue) = 0;  // see squares.hpp

  // Raises the site's `highest` to the largest addend seen. Does nothing on the host, where the loops themselves raise
  // `highest`.
  virtual void collect(SumSite& site) = 0;
};

}  // namespace chorale::exact
