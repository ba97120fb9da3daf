// Communication between the ranks that share a layer. A layer calls these functions at its boundaries without knowing
// what they do. These defaults are for a single rank and do not communicate; parallel/step/tensor.cpp overrides them.
//
//   the residual stream ── whole ──▶ columns of W here ─ … ─ rows of W here ── sum ──▶ the stream    (backward: the reverse)
//
// The rows of the residual stream may be split between the ranks (sequence parallelism). Then `whole` gathers all rows, and
// the sum leaves each rank with its own rows.
#pragma once
#include <functional>

#include "src/math/numerics.hpp"

namespace chorale {

struct Context;

class ShardBoundary {
 public:
  virtual ~ShardBoundary() = default;

  // Takes this rank's rows of the stream; returns all rows of the micro-batch.
  virtual Tensor whole(const Tensor& x, Context&) const { return x; }
  // Starts to add the partial sums of all ranks. The returned function waits and returns this rank's rows of the sum.
  // Computation between the two calls overlaps the communication.
  virtual std::function<Tensor()> start_sum(const Tensor& partial, SumSite& site, Context& context) const;
  // Takes all rows of the micro-batch, each nonzero on only one rank. Combines them over ranks and returns this
  // rank's rows of the stream.
  virtual Tensor pick(const Tensor& rows, Context&) const { return rows; }
  virtual void greatest(const Tensor&) const {}  // replaces each element by its maximum over ranks
  // Sums both tensors over ranks, in place. A hit is the logit of a row's target; each hit is nonzero on only one rank.
  virtual void add(const Tensor& /*sums*/, const Tensor& /*hits*/) const {}
  // rows: how many of the `all` rows of a micro-batch this rank has in the stream. first_row: the index of the first one.
  virtual std::int64_t rows(std::int64_t all) const { return all; }
  virtual std::int64_t first_row(std::int64_t /*all*/) const { return 0; }

  // Without sequence parallelism, the activations kept for recomputation are the same on all ranks. If the ranks split
  // them, `part` gives the part that this rank keeps, and `restored` gathers the whole again.
  virtual Tensor part(const Tensor& x, Context&) const { return x; }
  virtual Tensor restored(const Tensor& part, Context&) const { return part; }
  virtual std::int64_t kept_rows(std::int64_t all) const { return rows(all); }

  static const ShardBoundary& alone();
};

}  // namespace chorale
