// Where ranks that share a layer meet. A layer calls these at its ends and does not know what they do; alone, they do nothing.
// parallel/tensor.cpp has those that communicate.
//
//   the residual stream ── whole ──▶ columns of W here ─ … ─ rows of W here ── sum ──▶ the stream        (and back, the other way round)
//
// The stream may be cut by rows between the ranks (sequence parallelism): then `whole` gathers them and `sum` leaves each its own.
#pragma once
#include <functional>

#include "src/math/numerics.hpp"

namespace chorale {

struct Context;

class Joint {
 public:
  virtual ~Joint() = default;

  // All rows of the micro-batch, from those of the stream that are here.
  virtual Tensor whole(const Tensor& x, Context&) const { return x; }
  // Begins to add the partial sums of all ranks; what it returns gives their value, on the rows of the stream that are here. What is done
  // in between hides the way.
  virtual std::function<Tensor()> start_sum(const Tensor& partial, Site& site, Context& context) const;
  // Each row is on one rank, and zeros on the others: brings them together, on the rows of the stream that are here.
  virtual Tensor pick(const Tensor& rows, Context&) const { return rows; }
  virtual void greatest(const Tensor&) const {}  // in place, of all ranks
  // In place: sums are added; of hits each is on one rank, and 0 on the others.
  virtual void add(const Tensor& /*sums*/, const Tensor& /*hits*/) const {}
  // Of so many rows of a micro-batch, those of the stream that are here.
  virtual std::int64_t rows(std::int64_t all) const { return all; }

  // What is kept for a second forward pass is on all ranks alike, unless they share it: each its part, brought together again later.
  virtual Tensor part(const Tensor& x, Context&) const { return x; }
  virtual Tensor restored(const Tensor& part, Context&) const { return part; }
  virtual std::int64_t kept_rows(std::int64_t all) const { return rows(all); }

  static const Joint& alone();
};

}  // namespace chorale
