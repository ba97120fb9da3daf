// One rank's boards in all its groups. A group's board stays up until all members have said farewell, which may be long
// after this rank has left.
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
  Buffer put_up(int members);
  void take_down(Buffer board, int members) { left_.push_back({std::move(board), members}); }

 private:
  struct Left {
    Buffer board;
    int members;
  };
  std::unique_ptr<Reach> reach_;
  std::vector<Left> left_;
};

}  // namespace chorale::mapped
