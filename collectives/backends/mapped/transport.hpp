// The common part of the two backends on mapped memory, shm and threads. They differ in how a rank reaches another rank's
// memory (Reach), and in how ranks exchange numbers at the start.
#pragma once
#include "collectives/backends/mapped/group.hpp"

namespace chorale::mapped {

class MappedTransport : public Transport {
 public:
  explicit MappedTransport(std::shared_ptr<Boards> boards) : boards_(std::move(boards)) {}

  Memory& memory() override { return boards_->reach().memory().memory(); }
  bool plans_for_all() const override { return true; }
  Reach& reach() const { return boards_->reach(); }

  std::int64_t offer(int members) override {
    board_ = boards_->put_up(members);
    return static_cast<std::int64_t>(boards_->reach().locate(board_.data()));
  }
  std::unique_ptr<Group> join(const Membership& membership) override {
    return std::make_unique<MappedGroup>(boards_, membership, std::move(board_));
  }

 private:
  std::shared_ptr<Boards> boards_;
  Buffer board_;  // held between offer() and join()
};

}  // namespace chorale::mapped
