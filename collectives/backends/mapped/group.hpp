// The ranks of one group on mapped memory, and their boards.
#pragma once
#include <memory>

#include "collectives/backends/mapped/boards.hpp"
#include "collectives/backends/transport.hpp"

namespace chorale::mapped {

class MappedGroup final : public Group {
 public:
  // This rank's board was offered when the group was created; `membership.offers` locates the others'.
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
  Board* board_of(int rank);               // null until the other rank of a pair has put up its board
  bool may_enter(std::uint64_t sequence);  // all members have finished with the slot
  // The tag of the slot's next use.
  std::uint64_t turn(std::uint64_t sequence) { return turns_[sequence % slots] += one_turn; }
  void finished(std::uint64_t sequence);
  void say(Slot& slot, const Plan& plan);  // writes the call in words to the slot
  // Whether `rank` may still touch the buffers of that call, whose use of the slot has this tag.
  bool is_at(int rank, std::uint64_t sequence, std::uint64_t tag);
  void throw_if_poisoned();
  void throw_if_left(std::uint64_t sequence, const std::string& words);    // throws if a member left before that call
  [[noreturn]] void throw_calls_differ(int rank, std::uint64_t sequence);  // `rank` made other calls

 private:
  MappedGroup(MappedGroup& parent, int from, int to);
  void compare_newest(int other);

  std::shared_ptr<Boards> site_;
  Membership membership_;
  Buffer board_;
  std::vector<Board*> boards_;
  const std::uint64_t* announced_ = nullptr;    // of a pair: where the other rank will announce its board …
  const std::uint64_t* left_parent_ = nullptr;  // … and where it tells that it left the parent, so that no board will come
  std::uint64_t said_[slots] = {};              // by slot: signature of the call whose words it shows
  std::uint64_t turns_[slots] = {};             // tags; equal on all ranks
  std::uint64_t all_finished_ = 0;              // as far as known, of the slowest member
  std::uint64_t own_finished_ = 0;              // all calls up to this one
  std::uint64_t out_of_order_ = 0;              // bit i: own_finished_ + 2 + i is finished too
};

}  // namespace chorale::mapped
