// What a batch comes to over all ranks, in one collective and, on a device, one wait for all that was asked of it:
//
//   fast, f64    summed loss | tokens | ranks whose sums went wrong | ‖g‖²
//   exact, i64   summed loss | tokens | ranks whose sums went wrong | ‖g‖² in four words of 32 bits, whose sums over ranks cannot overflow
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
  Tensor loss() const { return all_.narrow(0, 1); }  // which grows there
  SquareSum squares() const;                         // zero; on a device it grows here
  // This rank's: its loss where that counts, and the rest. Of a plan all sums are 0.
  Sums add_up(Axis& world, bool loss_counts, std::int64_t tokens, bool sound, const SquareSum& squares);

 private:
  Tensor all_;
};

}  // namespace chorale
