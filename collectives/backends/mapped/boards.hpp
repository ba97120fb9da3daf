// One rank's boards (board.hpp) in all its groups. After this rank has left a group, its board stays allocated until all
// other members have left too. It is freed by the first put_up() after that, or with Boards, at the end of this rank's
// world. Peers that are still in their last call may read it even then: no memory of this world is lent any more, and a
// board is too small for the arena to return its pages (Arena::kept_bytes). The memory lives until the last peer unmaps
// it.
#pragma once
#include <memory>
#include <vector>

#include "collectives/backends/mapped/board.hpp"
#include "collectives/backends/mapped/reach.hpp"

namespace chorale::mapped {

class Boards {
 public:
  explicit Boards(std::unique_ptr<Reach> reach) : reach_(std::move(reach)) {}

  Reach& reach() const { return *reach_; }
  Buffer put_up(int members);  // a new board; also frees boards that all members have left
  void take_down(Buffer board, int members) { left_.push_back({std::move(board), members}); }  // to be freed later

 private:
  struct Left {
    Buffer board;
    int members;
  };
  std::unique_ptr<Reach> reach_;
  std::vector<Left> left_;
};

}  // namespace chorale::mapped
