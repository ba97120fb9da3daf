// Records which steps of a schedule last accessed each element of a buffer. With this record, a schedule finds the steps
// that a new step must wait for. It does not compare the new step with all earlier steps, so the cost of planning stays
// nearly linear in the number of steps.
//
//   elements          0 ───── 4 ───── 8 ─── …       Then step 7 reads 2..6. It waits for steps 3 and 5. The pieces become
//   written by step       3       5                 0..2 by 3 · 2..4 by 3, read by 7 · 4..6 by 5, read by 7 · 6..8 by 5
#pragma once
#include <cstdint>
#include <limits>
#include <map>
#include <vector>

namespace chorale {

class LastAccess {
 public:
  // Record that `step`, the newest step, reads or writes these elements. Append to `after` the steps that it must wait for.
  void read(std::int64_t first, std::int64_t count, int step, std::vector<int>& after);
  void write(std::int64_t first, std::int64_t count, int step, std::vector<int>& after);

 private:
  struct Piece {               // consecutive elements with the same last accesses
    int writer = -1;           // the step that last wrote them; −1: none
    std::vector<int> readers;  // steps that have read them since
  };
  using Pieces = std::map<std::int64_t, Piece>;  // keyed by first element; a piece ends where the next begins
  Pieces::iterator cut(std::int64_t element);    // the piece that begins at `element`; splits one if necessary

  Pieces pieces_{{std::numeric_limits<std::int64_t>::min(), {}}};
};

}  // namespace chorale
