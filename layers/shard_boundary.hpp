// Communication between the ranks that share a layer. A layer calls these functions at its boundaries without knowing how
// they communicate. The default implementations are for a single rank and do not communicate; parallel/step/tensor.cpp
// overrides them.
//
//   the residual stream ── whole ──▶ columns of W here ─ … ─ rows of W here ── sum ──▶ the stream    (backward: the reverse)
//
// The rows of the residual stream can be split between the ranks (sequence parallelism). With sequence parallelism, `whole`
// gathers all rows, and start_sum() returns only this rank's rows.
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
  // Starts the reduction of the partial sums over ranks. The returned function waits for the reduction and returns this
  // rank's rows of the sum. Computation between the two calls overlaps the communication.
  virtual std::function<Tensor()> start_sum(const Tensor& partial, SumSite& site, Context& context) const;
  // Takes all rows of the micro-batch, where each row is nonzero on only one rank. Combines the rows over ranks and returns
  // this rank's rows of the stream.
  virtual Tensor pick(const Tensor& rows, Context&) const { return rows; }
  virtual void greatest(const Tensor&) const {}  // replaces each element by its maximum over ranks
  // Sums `sums` and `hits` over ranks, in place. A hit is the logit of a row's target. Each hit is nonzero on only one rank.
  virtual void add(const Tensor& /*sums*/, const Tensor& /*hits*/) const {}
  // `all` is the number of rows of the micro-batch. rows() returns how many rows of the residual stream this rank has, and
  // first_row() returns the index of the first of them in the micro-batch.
  virtual std::int64_t rows(std::int64_t all) const { return all; }
  virtual std::int64_t first_row(std::int64_t /*all*/) const { return 0; }

  // Without sequence parallelism, the activations kept for recomputation are the same on all ranks. If the ranks split these
  // activations, `part` returns the part that this rank keeps, and `restored` gathers the complete tensor again.
  virtual Tensor part(const Tensor& x, Context&) const { return x; }
  virtual Tensor restored(const Tensor& part, Context&) const { return part; }
  virtual std::int64_t kept_rows(std::int64_t all) const { return rows(all); }

  static const ShardBoundary& alone();
};

}  // namespace chorale
