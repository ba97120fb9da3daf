#include "collectives/parts.hpp"

namespace chorale {

std::vector<Range> around(const Home& home, int size, int first, int count) {
  std::vector<Range> pieces;
  for (int b = first % size, left = count; left > 0; b = 0) {
    const int here = std::min(left, size - b);
    Range piece = home(b);
    for (int i = 1; i < here; ++i) piece.count += home(b + i).count;
    pieces.push_back(piece);
    left -= here;
  }
  return pieces;
}

}  // namespace chorale
