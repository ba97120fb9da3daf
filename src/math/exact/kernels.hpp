// The loops of exact numerics on one processor: the host (host_kernels.hpp) or a device (src/math/cuda/exact.cuh). Before
// each call, ExactNumerics checks that shapes and types match, that no tensor is phantom (without storage), and that all
// tensors are on one device.
//
// All implementations compute the same addends by the same operations in the same order and round them to integer units
// (fixed_point.hpp). The order in which the integers are added does not matter, so the results of all implementations are
// bit-identical.
#pragma once
#include "src/math/numerics.hpp"

namespace chorale::exact {

// An operand of a matrix product. Element (i, k) of the left operand is data[i·along + k·across], and element (k, j) of the
// right operand is data[j·along + k·across]. One of the two strides is 1.
template <class T>
struct SideOf {
  const T* data;
  std::int64_t along, across;
};
using Side = SideOf<float>;

// The two operands of a product y[rows, columns], which sums over `depth`.
struct Operands {
  Side a, b;
  std::int64_t rows, columns, depth;
};

class Kernels {
 public:
  virtual ~Kernels() = default;

  // Computes each element as one chain over the complete depth, and then adds the bias.
  virtual void product(const Operands& operands, const Tensor* bias, const Tensor& y, const Queue& queue) = 0;
  // Sums over blocks of the depth, with one chain per block. If `onto` is true, adds the result to the existing sums.
  // `blocks` lists the lengths of the blocks; no length is 0.
  virtual void sum_blocks(const Operands& operands, std::span<const std::int64_t> blocks, bool onto, const Tensor& sums,
                          SumSite& site, const Queue& queue) = 0;
  // Adds to the integer sums in `dkeys`.
  virtual void attention_backward(const AttentionInput& in, const Tensor& dout, const Tensor& out, const Tensor& lse,
                                  const Tensor& dqkv, const KeyRows& dkeys, std::int64_t leaf, SumSite& site,
                                  const Queue& queue) = 0;
  virtual void settle(const Tensor& partial, const Tensor& y, float unit, const Queue& queue) = 0;

  // The functions below are the same as in Numerics.
  virtual void add_columns(const Tensor& dy, const Tensor& db, SumSite& site, const Queue& queue) = 0;
  virtual void add_norm_gradients(const Tensor& dy, const Tensor& x, const Tensor& stats, const Tensor& dgain,
                                  const Tensor* dshift, SumSite& site, const Queue& queue) = 0;
  virtual void add_rows(const Tensor& ids, std::int64_t first, const Tensor& dy, const Tensor& table, SumSite& site,
                        const Queue& queue) = 0;
  virtual void sum_exponentials(const Tensor& logits, const Tensor& maxima, const Tensor& sums, SumSite& site,
                                const Queue& queue) = 0;
  virtual void add_losses(const Tensor& losses, const Tensor& total, SumSite& site, const Queue& queue) = 0;
  virtual __int128 squares(std::span<const ScaledSlice> gradients, const Queue& queue) = 0;  // see squares.hpp

  // Raises the site's `highest` to the largest addend so far. Does nothing on the host, where the loops themselves raise
  // `highest`.
  virtual void collect(SumSite& site) = 0;
};

std::unique_ptr<Numerics> numerics_on(std::unique_ptr<Kernels> kernels);  // exact numerics with these loops

}  // namespace chorale::exact
