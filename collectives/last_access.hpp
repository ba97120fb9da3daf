// Which steps last accessed each element of a buffer. A schedule asks it which steps a new step must wait for, instead of
// comparing the new step with all earlier ones. So the cost of planning stays nearly linear in the number of steps.
//
//   elements   0 ───── 4 ───── 8 ─── …        step 7 reads 2..6: it waits for 3 and 5, and the pieces become
//   written by     3       5                  0..2 by 3 · 2..4 by 3, read by 7 · 4..6 by 5, read by 7 · 6..8 by 5
#pragma once
#include <cstdint>
#include <limits>
#include <map>
#include <vector>

namespace chorale {

class LastAccess {
 public:
  // The newest step reads or writes these elements. Adds the steps that it must wait for to `after`.
  void read(std::int64_t first, std::int64_t count, int step, std::vector<int>& after);
  void write(std::int64_t first, std::int64_t count, int step, std::vector<int>& after);

 private:
  struct Piece {
    int writer = -1;           // −1: none yet
    std::vector<int> readers;  // since the last write
  };
  using Pieces = std::map<std::int64_t, Piece>;  // keyed by first element; a piece ends where the next begins
  Pieces::iterator cut(std::int64_t element);    // the piece that begins there, split off if necessary

  Pieces pieces_{{std::numeric_limits<std::int64_t>::min(), {}}};
};

}  // namespace chorale
