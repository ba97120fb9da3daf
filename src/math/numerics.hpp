// How the sums are made that cross tokens, shards or ranks: the one place where fast and exact numerics differ. What stays within a token
// (norms, activations, an attention head) is the same code for both.
//
//   fast    products by oneDNN; gradients accumulate in f32; a partial sum has the type of the activations
//   exact   the same bits on every layout: products are chains over canonical blocks, each rounded to fixed point, added as int64
//
// With M tokens, K inputs, N outputs:
//
//   product           y[M,N] = x[M,K]·w           K is whole on every rank
//   partial_product   y[M,N] = Σ over blocks of K; ranks that hold other blocks add theirs; `settle` then reads the value
//   add_outer         dw[K,N] += xᵀ·dy             Σ over tokens, leaf by leaf
//   add_columns       db[N] += Σ over tokens of dy
//
// Every tensor may be phantom: then nothing is computed.
#pragma once
#include <memory>
#include <span>
#include <string>

#include "src/math/norm.hpp"
#include "src/math/queue.hpp"

namespace chorale {

// What a fixed-point sum is over; it decides the exponent. Fast numerics looks at none of it.
enum class SumOf : std::uint8_t { activations, input_gradients, weight_gradients, token_gradients, exponentials, losses };

// One place where sums are made: its name for messages, and the greatest addend seen. `addends` is the most that any layout adds up, from
// the configuration alone.
struct Site {
  std::string name;
  SumOf sum = SumOf::activations;
  std::int64_t addends = 1;
  std::uint32_t highest = 0;  // bits of the greatest magnitude, scaled; Inf and NaN are above all numbers
  std::int32_t word = -1;     // where a device keeps its highest, once it does
};

// Gradients of the norm, by what each is to be multiplied with.
struct ScaledSlice {
  Slice values;
  double scale = 1;
};

// ‖g‖² as it grows. Either number can be added over ranks in its own way. On a device the fast one grows in device memory, from zero, so
// that nobody waits for it.
struct SquareSum {
  double fast = 0;
  __int128 exact = 0;
  void* there = nullptr;
};

class Numerics {
 public:
  virtual ~Numerics() = default;
  virtual const char* name() const = 0;
  virtual DType partial_type(DType compute) const = 0;   // of partial sums: compute itself, or i64
  virtual DType gradient_type(DType compute) const = 0;  // of accumulated gradients: f32 (f64 for f64), or i64

  // w is [K,N], or [N,K] where `transposed`. With a bias [N], y = x·w + bias.
  virtual void product(const Tensor& x, const Tensor& w, bool transposed, const Tensor* bias, const Tensor& y,
                       const Queue& queue) = 0;
  virtual void partial_product(const Tensor& x, const Tensor& w, bool transposed, std::int64_t block, const Tensor& y,
                               Site& site, const Queue& queue) = 0;
  virtual void settle(const Tensor& partial, const Tensor& y, const Site& site, const Queue& queue) = 0;

  // Gradients only grow; `leaf` tokens are summed as plain floats (a divisor of the tokens of a sequence).
  virtual void add_outer(const Tensor& x, const Tensor& dy, std::int64_t leaf, const Tensor& dw, Site& site,
                         const Queue& queue) = 0;
  virtual void add_columns(const Tensor& dy, const Tensor& db, Site& site, const Queue& queue) = 0;
  virtual void add_norm_gradients(NormKind kind, const Tensor& dy, const Tensor& x, const Tensor& stats, const Tensor& dgain,
                                  const Tensor* dshift, Site& site, const Queue& queue) = 0;
  // table[ids[row] − first] += dy[row], for ids that are within the table.
  virtual void add_rows(const Tensor& ids, std::int64_t first, const Tensor& dy, const Tensor& table, Site& site,
                        const Queue& queue) = 0;

  // sums[row] = Σ_j exp(logits[row,j] − maxima[row]), a partial sum of type gradient_type(compute).
  virtual void sum_exponentials(const Tensor& logits, const Tensor& maxima, const Tensor& sums, Site& site,
                                const Queue& queue) = 0;
  // total[0] += Σ of losses[rows], in f64 or i64.
  virtual void add_losses(const Tensor& losses, const Tensor& total, Site& site, const Queue& queue) = 0;

  // What one unit of an accumulated gradient, sum of exponentials or loss is worth: 1, or the site's power of two.
  virtual double unit(const Site& site) const = 0;
  virtual void add_squares(std::span<const ScaledSlice> gradients, SquareSum& sum, const Queue& queue) const = 0;
  virtual double root(const SquareSum& sum) const = 0;

  // Throws, naming the site, if an addend was so large (or no number) that a sum could have overflowed. `highest` is up to date then; a device
  // is waited for by the first site that is asked.
  virtual void check(Site& site) const = 0;
};

std::unique_ptr<Numerics> fast_numerics();
std::unique_ptr<Numerics> exact_numerics();                         // of the host
std::unique_ptr<Numerics> numerics_named(const std::string& name);  // "fast" or "exact"

}  // namespace chorale
