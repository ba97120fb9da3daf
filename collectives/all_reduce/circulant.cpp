// Circulant all-reduce (Träff 2023): the circulant reduce-scatter, then the circulant all-gather. The algorithm takes 2⌈log₂
// p⌉ rounds; each rank sends 2(p−1)/p times the vector's size. Both costs hold for every number of ranks p, because the
// circulant algorithm does not fold ranks into pairs.
#include "collectives/schedule/phases.hpp"

namespace chorale::all_reduce {

Schedule circulant(const Problem& p) {
  Schedule s(p);
  circulant_reduce_scatter(s, in_input(p), in_output(p));
  circulant_all_gather(s, in_output(p));
  return s;
}

}  // namespace chorale::all_reduce
