// Circulant all-reduce (Träff 2023): the circulant reduce-scatter, then the same backwards. 2⌈log₂ p⌉ rounds and 2(p−1)/p of the vector
// a rank for every p: nothing is folded.
#include "collectives/phases.hpp"

namespace chorale::all_reduce {

Schedule circulant(const Problem& p) {
  Schedule s(p);
  circulant_reduce_scatter(s, in_output(p));
  circulant_all_gather(s, in_output(p));
  return s;
}

}  // namespace chorale::all_reduce
