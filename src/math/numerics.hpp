// Fast and exact numerics differ only in how they compute sums over tokens, shards or ranks. Fast and exact numerics use the
// same code for operations within one token (norms, activations, an attention head).
//
//   fast    products by oneDNN (on the host); gradients accumulate in f32; a partial product has the type of the activations
//   exact   bit-identical on every layout: FMA chains over fixed blocks are rounded to fixed point and added as int64
//
// With M tokens, K inputs, N outputs:
//
//   product           y[M,N] = x[M,K]·w            every rank has all of K
//   partial_product   y[M,N] = x·w over this rank's part of K only; the caller then adds the partial products of all ranks
//   settle            converts the sum over ranks from partial_type to the compute type
//   add_outer         dw[K,N] += xᵀ·dy             Σ over tokens; in exact numerics by leaves (fixed groups of tokens)
//   add_columns       db[N] += Σ over tokens of dy
//
// A tensor can be phantom: a phantom tensor has a shape but no storage, and kernels compute nothing with it.
#pragma once
#include <memory>
#include <span>
#include <string>

#include <chorale/math.hpp>
#include "src/math/attention.hpp"
#include "src/math/leaves.hpp"
#include "src/math/norm.hpp"
#include "src/math/queue.hpp"

namespace chorale {

// The kind of values that a sum adds. In exact numerics, the kind determines the fixed-point exponent. Fast numerics ignores
// the kind. token_gradients are gradients of biases, norms and embedding tables, which are summed token by token.
enum class SumOf : std::uint8_t { activations, input_gradients, weight_gradients, token_gradients, exponentials, losses };

// A point in the model at which values are summed. `addends` is the largest number of addends on any layout; the
// configuration determines it. `highest` records the largest addend so far.
struct SumSite {
  std::string name;
  SumOf sum = SumOf::activations;
  std::int64_t addends = 1;
  std::uint32_t highest = 0;  // bits of the largest |addend| / unit(site) as a float; as integers, Inf and NaN are above all
                              // finite values
  std::int32_t word = -1;     // index of this site's `highest` in a device array, or −1 if it is not assigned yet
};

// A gradient that contributes to the gradient norm, and the factor that multiplies its elements.
struct ScaledSlice {
  Slice values;
  double scale = 1;
};

// The running sum ‖g‖²: `fast` in fast numerics, `exact` in exact numerics. The sums of several ranks can be added. On a
// device, fast numerics adds to a sum in device memory instead, so that the host does not wait.
struct SquareSum {
  double fast = 0;
  __int128 exact = 0;
  void* there = nullptr;  // the f64 sum in device memory, which the caller sets to zero; if it is null, the sum is in `fast`
};

class Numerics {
 public:
  virtual ~Numerics() = default;
  virtual const char* name() const = 0;
  virtual DType partial_type(DType compute) const = 0;   // type of partial products: `compute` in fast numerics, i64 in
                                                         // exact numerics
  virtual DType gradient_type(DType compute) const = 0;  // type of gradient sums: f32 or f64 in fast numerics, i64 in exact
                                                         // numerics

  // w is [K,N], or [N,K] if `transposed`. With a bias [N], y = x·w + bias.
  virtual void product(const Tensor& x, const Tensor& w, bool transposed, const Tensor* bias, const Tensor& y,
                       const Queue& queue) = 0;
  // Exact numerics rounds the sum over each block of `block` inputs. Fast numerics ignores `block`.
  virtual void partial_product(const Tensor& x, const Tensor& w, bool transposed, std::int64_t block, const Tensor& y,
                               SumSite& site, const Queue& queue) = 0;
  virtual void settle(const Tensor& partial, const Tensor& y, const SumSite& site, const Queue& queue) = 0;

  // The functions below add to gradients. Exact numerics sums the products of each leaf in floats, and adds the sums of
  // leaves exactly. Fast numerics ignores the leaves.
  virtual void add_outer(const Tensor& x, const Tensor& dy, const Leaves& leaves, const Tensor& dw, SumSite& site,
                         const Queue& queue) = 0;
  // Does the same as add_outer, but `leaves` lists the number of rows in each leaf; a leaf can have no rows. The lengths of
  // the leaves add up to the number of rows of x.
  virtual void add_outer_by_leaves(const Tensor& x, const Tensor& dy, std::span<const std::int64_t> leaves, const Tensor& dw,
                                   SumSite& site, const Queue& queue) = 0;
  virtual void add_columns(const Tensor& dy, const Tensor& db, SumSite& site, const Queue& queue) = 0;
  virtual void add_norm_gradients(NormKind kind, const Tensor& dy, const Tensor& x, const Tensor& stats, const Tensor& dgain,
                                  const Tensor* dshift, SumSite& site, const Queue& queue) = 0;
  // table[ids[row] − first] += dy[row], for ids within the table.
  virtual void add_rows(const Tensor& ids, std::int64_t first, const Tensor& dy, const Tensor& table, SumSite& site,
                        const Queue& queue) = 0;

  // Computes the gradients of attention (attention.hpp). The gradients of keys and values are sums over queries. Ranks can
  // split the queries, so `dkeys` has the type of partial sums. Exact numerics sums these gradients by leaves of `leaf`
  // consecutive queries of a sample.
  virtual void attention_backward(const AttentionInput& in, const Tensor& dout, const Tensor& out, const Tensor& lse,
                                  const Tensor& dqkv, const KeyRows& dkeys, std::int64_t leaf, SumSite& site,
                                  const Queue& queue) = 0;

  // sums[row] = Σ_j exp(logits[row,j] − maxima[row]), over this rank's columns j. `sums` has type gradient_type(compute).
  virtual void sum_exponentials(const Tensor& logits, const Tensor& maxima, const Tensor& sums, SumSite& site,
                                const Queue& queue) = 0;
  // Adds the sum of all losses to total[0], which is f64 in fast numerics and i64 in exact numerics.
  virtual void add_losses(const Tensor& losses, const Tensor& total, SumSite& site, const Queue& queue) = 0;

  // Exact numerics accumulates gradients, exponentials and losses as integers. The value of such a sum is the integer times
  // unit(site), a power of two. Fast numerics accumulates floats, so its unit is 1.
  virtual double unit(const SumSite& site) const = 0;
  virtual void add_squares(std::span<const ScaledSlice> gradients, SquareSum& sum, const Queue& queue) const = 0;
  virtual double root(const SquareSum& sum) const = 0;

  // Throws if an addend was NaN or so large that a sum could have overflowed. The error names the site. Updates `highest`.
  // The first check after sums on a device waits for the device.
  virtual void check(SumSite& site) const = 0;
};

void require_leaves(std::span<const std::int64_t> leaves, std::int64_t rows);  // throws unless the lengths of the leaves add
                                                                               // up to `rows`

std::unique_ptr<Numerics> fast_numerics();
std::unique_ptr<Numerics> exact_numerics();  // on the host
std::unique_ptr<Numerics> numerics_of(NumericsKind kind);

}  // namespace chorale
