#include "collectives/backends/mapped/boards.hpp"

#include <cstring>

#include "src/base/error.hpp"
#include "src/memory/arena.hpp"

namespace chorale::mapped {

Buffer Boards::put_up(int members) {
  std::erase_if(left_, [](Left& left) {
    for (int r = 0; r < left.members; ++r)
      if (look(member(*static_cast<Board*>(left.board.data()), r).gone) == 0) return false;
    return true;
  });
  require(board_bytes(members) <= Arena::kept_bytes, "{} ranks of one host are too many for a board", members);
  Buffer board = reach_->memory().allocate(board_bytes(members), Category::comm);
  // Initializes only words and counters, which may be read before they are first written. Most pages stay untouched.
  auto* fresh = static_cast<Board*>(board.data());
  show(fresh->finished, 0);
  show(fresh->poisoned, 0);
  show(fresh->closed, 0);
  for (Slot& slot : fresh->slot) {
    slot.word = slot.history = 0;
    std::memset(slot.more, 0, sizeof slot.more);
  }
  for (int r = 0; r < members; ++r) member(*fresh, r) = Member{};
  return board;
}

}  // namespace chorale::mapped
