// Communication between the ranks that share a layer. A layer calls these functions at its boundaries without knowing
// what they do; on a single rank they do nothing. parallel/tensor.cpp implements the ones that communicate.
//
//   the residual stream ── whole ──▶ columns of W here ─ … ─ rows of W here ── sum ──▶ the stream    (backward: the reverse)
//
// The rows of the stream may be split between the ranks (sequence parallelism). Then `whole` gathers them, and `sum`
// leaves each rank its own.
#pragma once
#include <functional>

#include "src/math/numerics.hpp"

namespace chorale {

struct Context;

class ShardBoundary {
 public:
  virtual ~ShardBoundary() = default;

  // All rows of the micro-batch, from this rank's rows of the stream.
  virtual Tensor whole(const Tensor& x, Context&) const { return x; }
  // Starts to add the partial sums of all ranks. The returned function gives the sum on this rank's rows of the stream.
  // Work done in between hides the communication.
  virtual std::function<Tensor()> start_sum(const Tensor& partial, SumSite& site, Context& context) const;
  // Each row is nonzero on one rank only: combines them, on this rank's rows of the stream.
  virtual Tensor pick(const Tensor& rows, Context&) const { return rows; }
  virtual void greatest(const Tensor&) const {}  // in place: maximum over ranks
  // In place over ranks: adds the sums, and the hits, which are nonzero on one rank only.
  virtual void add(const Tensor& /*sums*/, const Tensor& /*hits*/) const {}
  // The number of this rank's rows of the stream, out of `all` rows of a micro-batch; and the index of the first of them.
  virtual std::int64_t rows(std::int64_t all) const { return all; }
  virtual std::int64_t first_row(std::int64_t /*all*/) const { return 0; }

  // Activations kept for recomputation are the same on all ranks. If ranks split them, each keeps a part, and `restored`
  // gathers them.
  virtual Tensor part(const Tensor& x, Context&) const { return x; }
  virtual Tensor restored(const Tensor& part, Context&) const { return part; }
  virtual std::int64_t kept_rows(std::int64_t all) const { return rows(all); }

  static const ShardBoundary& alone();
};

}  // namespace chorale
