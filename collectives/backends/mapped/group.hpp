// The ranks of one group on mapped memory, and their boards.
#pragma once
#include <memory>

#include "collectives/backends/mapped/boards.hpp"
#include "collectives/backends/transport.hpp"

namespace chorale::mapped {

class MappedGroup final : public Group {
 public:
  // The own board was offered when the group was made; where the others' lie came back.
  MappedGroup(std::shared_ptr<Boards> boards, Membership membership, Buffer board);
  ~MappedGroup() override;

  std::unique_ptr<Operation> prepare(const Plan& plan) override;
  std::unique_ptr<Group> pair(int from, int to) override;
  void poison(const std::string& why) noexcept override;
  void leave() override;

  int rank() const { return membership_.rank; }
  int size() const { return static_cast<int>(membership_.members.size()); }
  int world_rank(int rank) const { return membership_.members[static_cast<std::size_t>(rank)]; }
  Reach& reach() const { return site_->reach(); }

  Board& own() const { return *static_cast<Board*>(board_.data()); }
  Board* board_of(int rank);               // null while the other rank of a pair has not put up its board
  bool may_enter(std::uint64_t sequence);  // all have finished with the slot
  std::uint64_t turn(std::uint64_t sequence) {
    return turns_[sequence % slots] += one_turn;
  }  // the tag of the slot's next use
  void finished(std::uint64_t sequence);
  void say(Slot& slot, const Plan& plan);  // in words what the slot is used for
  bool is_at(int rank, std::uint64_t sequence,
             std::uint64_t tag);  // may still touch the buffers of that call, whose use of the slot has this tag
  void throw_if_poisoned();
  void throw_if_left(std::uint64_t sequence, const std::string& words);    // a member did, before that call
  [[noreturn]] void throw_calls_differ(int rank, std::uint64_t sequence);  // that rank has made other calls

 private:
  MappedGroup(MappedGroup& parent, int from, int to);
  void compare_newest(int other);

  std::shared_ptr<Boards> site_;
  Membership membership_;
  Buffer board_;
  std::vector<Board*> boards_;
  const std::uint64_t* announced_ = nullptr;    // of a pair: where the other rank will say where its board is …
  const std::uint64_t* left_parent_ = nullptr;  // … and that it has left the parent, so that no board will come
  std::uint64_t said_[slots] = {};              // signatures
  std::uint64_t turns_[slots] = {};             // tags; all ranks count alike
  std::uint64_t all_finished_ = 0;              // what is known of the slowest
  std::uint64_t own_finished_ = 0;              // all up to this one
  std::uint64_t out_of_order_ = 0;              // bit i: own_finished_ + 2 + i is finished too
};

}  // namespace chorale::mapped
