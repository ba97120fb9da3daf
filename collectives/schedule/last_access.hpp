// For each element of a buffer, LastAccess records the steps of a schedule that accessed the element most recently. From
// this record, a schedule finds the steps that a new step must wait for. The cost of planning is nearly linear in the number
// of steps, because a new step is not compared with all earlier steps.
//
//   elements          0 ───── 4 ───── 8 ─── …       Then step 7 reads 2..6. It waits for steps 3 and 5. New segments:
//   written by step       3       5                 0..2 by 3 · 2..4 by 3, read by 7 · 4..6 by 5, read by 7 · 6..8 by 5
#pragma once
#include <cstdint>
#include <limits>
#include <map>
#include <vector>

namespace chorale {

class LastAccess {
 public:
  // read() and write() record that the newest step, `step`, accesses these elements. Both functions append to the list
  // `after` the steps that `step` must wait for.
  void read(std::int64_t first, std::int64_t count, int step, std::vector<int>& after);
  void write(std::int64_t first, std::int64_t count, int step, std::vector<int>& after);

 private:
  struct Piece {               // a segment: consecutive elements with the same last accesses
    int writer = -1;           // the last step that wrote the segment, or −1 if there is none
    std::vector<int> readers;  // steps that have read the segment since then
  };
  using Pieces = std::map<std::int64_t, Piece>;  // keyed by first element; a segment ends where the next segment begins
  Pieces::iterator cut(std::int64_t element);    // returns the segment that begins at `element`; splits a segment if needed

  Pieces pieces_{{std::numeric_limits<std::int64_t>::min(), {}}};
};

}  // namespace chorale
