// The totals of a batch over all ranks, in one all-reduce. On a device, this is also the step's only wait.
//
//   fast, f64    summed loss | tokens | ranks with bad sums | ‖g‖²
//   exact, i64   summed loss | tokens | ranks with bad sums | ‖g‖² as four 32-bit words, which cannot overflow when added
#pragma once
#include "parallel/axis.hpp"
#include "src/math/numerics.hpp"

namespace chorale {

class BatchTotals {
 public:
  struct Sums {
    double loss = 0, tokens = 0, bad_ranks = 0;
    SquareSum squares;
  };

  BatchTotals(Allocator& memory, bool exact);
  bool phantom() const { return all_.phantom(); }

  void clear() { chorale::clear(all_); }
  Tensor loss() const { return all_.narrow(0, 1); }  // the head adds the loss here
  SquareSum squares() const;                         // starts at zero; on a device the sum accumulates here
  // Adds this rank's totals to those of all ranks; its loss only if `loss_counts`. In a plan all sums are 0.
  Sums add_up(Axis& world, bool loss_counts, std::int64_t tokens, bool sound, const SquareSum& squares);

 private:
  Tensor all_;
};

}  // namespace chorale
