// A group of ranks on mapped memory. Each rank shows its progress to the other ranks on a flag page (flag_page.hpp).
#pragma once
#include <memory>

#include "collectives/backends/mapped/flag_pages.hpp"
#include "collectives/transport/transport.hpp"

namespace chorale::mapped {

class MappedGroup final : public Group {
 public:
  // `page` is this rank's flag page; `membership.offers` holds the locations of all members' flag pages.
  MappedGroup(std::shared_ptr<FlagPages> pages, Membership membership, Buffer page);
  ~MappedGroup() override;

  std::unique_ptr<Operation> prepare(const Plan& plan) override;
  std::unique_ptr<Group> pair(int from, int to) override;
  void poison(const std::string& why) noexcept override;
  void leave() override;

  int rank() const { return membership_.rank; }
  int size() const { return static_cast<int>(membership_.members.size()); }
  int world_rank(int rank) const { return membership_.members[static_cast<std::size_t>(rank)]; }
  Reach& reach() const { return site_->reach(); }

  FlagPage& own() const { return *static_cast<FlagPage*>(page_.data()); }
  FlagPage* page_of(int rank);             // null if the other rank of a pair has not created its flag page yet
  bool may_enter(std::uint64_t sequence);  // whether all members have finished the previous call in the slot of this call
  int slowest();                           // the member that has finished the fewest calls
  void finished(std::uint64_t sequence);   // shows peers that this rank has finished this call
  void say(Slot& slot, const Plan& plan);  // writes a description of the plan's call to the slot
  bool is_at(int rank, std::uint64_t sequence);  // whether `rank` may still access other ranks' buffers in this call
  void throw_if_poisoned();                      // throws if a member gave up
  void throw_if_left(std::uint64_t sequence, const std::string& words);       // throws if a member left before this call
  void throw_if_calls_differ(std::uint64_t sequence, std::uint64_t history);  // throws if a member's call is mismatched
  [[noreturn]] void throw_calls_differ(int rank, std::uint64_t sequence);     // member `rank` made a mismatched call

 private:
  MappedGroup(MappedGroup& parent, int from, int to);
  void compare_newest(int other);

  std::shared_ptr<FlagPages> site_;
  Membership membership_;
  Buffer page_;
  std::vector<FlagPage*> pages_;
  // Used only in a pair. announced_ points to the 64-bit word to which the other rank will write the location of its flag
  // page. left_parent_ points to the other rank's farewell to the parent group. After that farewell, the other rank creates
  // no flag page.
  const std::uint64_t* announced_ = nullptr;
  const std::uint64_t* left_parent_ = nullptr;
  std::uint64_t said_[slots] = {};  // indexed by slot: signature of the call that the slot describes
  std::uint64_t all_finished_ = 0;  // every member has finished all calls up to this number
  std::uint64_t own_finished_ = 0;  // this rank has finished all calls up to this number
  std::uint64_t out_of_order_ = 0;  // bit i says whether call `own_finished_` + 2 + i is finished too
};

}  // namespace chorale::mapped
