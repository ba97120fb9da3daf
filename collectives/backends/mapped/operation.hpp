// One collective of a group on memory that peers can map: a Program, run over the boards. Nothing is allocated in a run, except the first
// time for ordinary buffers: a stand-in in symmetric memory, or, for large ones, room for what the kernel reads of the peers'.
//
// Cost on two cores: a step that finds its data ready takes some tens of ns beside its copying; what remains is the time a line of
// cache takes from core to core.
#pragma once
#include "collectives/backends/mapped/group.hpp"
#include "collectives/backends/mapped/program.hpp"

namespace chorale::mapped {

class MappedOperation final : public Operation {
 public:
  MappedOperation(MappedGroup& group, const Plan& plan);

  void start(const Run& run) override;
  bool progress() override;
  void examine() override { group_.throw_if_poisoned(); }

 private:
  struct Peer {
    bool met = false;
    const Slot* slot = nullptr;
    Location location[3] = {};  // of its input, output and scratch
    std::byte* mapped[3] = {};  // the same, as seen from here; null where it is not mapped
  };

  bool enter();
  bool meet(int rank);
  bool has_happened(const Event& event);
  bool all_happened(const std::vector<Event>& events);
  bool ready(const Action& action);
  void perform(const Action& action);
  void take(const Action& action);
  void sum(const Action& action);
  void read(const Spot& spot, std::int64_t first, std::int64_t count, void* into);
  void copy(void* to, const void* from, std::int64_t bytes) const;
  void publish(std::size_t a);
  void flush();
  bool finish();
  void place_buffers();

  const std::byte* seen(const Spot& spot) const;  // null when it is not mapped
  std::byte* own(const Spot& spot) const { return place_[static_cast<int>(spot.place)] + spot.first * element_; }
  std::byte* there(const Spot& spot) {  // where it is mapped
    return peer(spot.rank).mapped[static_cast<int>(spot.place)] + spot.first * element_;
  }
  Peer& peer(int rank) { return peers_[static_cast<std::size_t>(rank)]; }
  bool written_to(int rank) { return peer(rank).mapped[static_cast<int>(Place::output)] != nullptr; }

  MappedGroup& group_;
  const Plan plan_;
  const std::int64_t element_;
  const bool streams_;  // the data of all ranks together are more than the last-level cache holds
  const Program program_;
  std::vector<Peer> peers_;
  std::vector<char> done_;
  std::vector<std::uint64_t> words_;  // of this run, as shown on the board
  std::vector<const void*> sources_;
  std::vector<void*> targets_;
  Buffer scratch_, stand_in_[2], room_;

  // Of the run:
  Run run_;
  std::byte* place_[3] = {};  // where the steps find input, output and scratch
  bool stands_in_[2] = {};
  bool own_output_mapped_ = false;
  std::uint64_t tag_ = 0;
  Slot* slot_ = nullptr;
  std::size_t first_open_ = 0, at_the_end_ = 0;
  bool running_ = false, entered_ = false, unshown_ = false;
};

}  // namespace chorale::mapped
