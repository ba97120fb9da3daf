// The totals of a batch over all ranks, summed by one all-reduce. With a GPU, reading the totals is the only point of a step
// at which the host waits for the device. (Expert layers also wait.)
//
//   fast, f64    summed loss | tokens | ranks with bad sums | ‖g‖²
//   exact, i64   summed loss | tokens | ranks with bad sums | ‖g‖² as four 32-bit words, which cannot overflow when added
//
// A training step appends the number of times that each expert was chosen (layers/choice_counts.hpp). Even in f64 these
// counts are exact, up to 2⁵³.
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
  void count(std::int64_t tokens) { tokens_ += tokens; }  // adds to the number of counted targets on this rank
  Tensor loss() const { return all_.narrow(0, 1); }       // the head adds its losses to this element
  SquareSum squares() const;  // returns an empty sum for ‖g‖²; on a device, fast numerics adds directly to all_
  // Sums the totals of all ranks. This rank's loss counts only if `loss_counts`. `sound`: whether all sums on this rank were
  // valid. `counts`: the expert counts of this rank; the call replaces them by the sums over all ranks. After an evaluation,
  // `counts` is empty. In a plan, all results are 0.
  Sums add_up(Axis& world, bool loss_counts, bool sound, const SquareSum& squares, std::span<std::int64_t> counts = {});

 private:
  Tensor words() const;  // the elements that hold ‖g‖²

  std::int64_t counts_, tokens_ = 0;
  Tensor all_;
};

}  // namespace chorale
