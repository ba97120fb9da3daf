// The totals of a batch over all ranks, summed by one all-reduce. With a GPU, the host waits for the device only once per
// step, when it reads the totals. (Expert layers add further waits.)
//
//   fast, f64    summed loss | tokens | ranks with bad sums | ‖g‖²
//   exact, i64   summed loss | tokens | ranks with bad sums | ‖g‖² as four 32-bit words, which cannot overflow when added
//
// In a training step, the all-reduce also sums the number of times that each expert was chosen (layers/choice_counts.hpp).
// Counts up to 2⁵³ are exact even in f64.
#pragma once
#include <span>

#include "parallel/mesh/axis.hpp"
#include "src/math/numerics.hpp"

namespace chorale {

class BatchTotals {
 public:
  struct Sums {
    double loss = 0, tokens = 0, bad_ranks = 0;
    SquareSum squares;
  };

  BatchTotals(Allocator& memory, bool exact, std::int64_t counts);
  bool phantom() const { return all_.phantom(); }

  void clear();
  void count(std::int64_t tokens) { tokens_ += tokens; }  // adds to the number of unmasked targets on this rank
  Tensor loss() const { return all_.narrow(0, 1); }       // the head adds its losses to this element
  SquareSum squares() const;  // returns an empty sum for ‖g‖²; on a device, fast numerics instead adds to an element of
                              // `all_`
  // Sums the totals of all ranks. This rank's loss is added only if `loss_counts` is true. `sound` states whether all sums
  // on this rank were valid. `counts` holds the expert counts of this rank, which the call replaces by the sums over all
  // ranks. After an evaluation, `counts` is empty. In a plan, all results are 0.
  Sums add_up(Axis& world, bool loss_counts, bool sound, const SquareSum& squares, std::span<std::int64_t> counts = {});

 private:
  Tensor words() const;  // the elements that hold ‖g‖²

  std::int64_t counts_, tokens_ = 0;
  Tensor all_;
};

}  // namespace chorale
