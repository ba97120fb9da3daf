// Who touched which elements of a buffer last. A schedule asks it what a new step must wait for, instead of comparing the step with
// all that stand before it: planning stays close to linear in the steps.
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
  // Step `step`, the newest, reads or writes these elements: the steps it must wait for are added to `after`.
  void read(std::int64_t first, std::int64_t count, int step, std::vector<int>& after);
  void write(std::int64_t first, std::int64_t count, int step, std::vector<int>& after);

 private:
  struct Piece {
    int writer = -1;           // −1: none yet
    std::vector<int> readers;  // since it was written
  };
  using Pieces = std::map<std::int64_t, Piece>;  // by first element; a piece ends where the next begins
  Pieces::iterator cut(std::int64_t element);    // the piece that begins there, made if need be

  Pieces pieces_{{std::numeric_limits<std::int64_t>::min(), {}}};
};

}  // namespace chorale
