// One collective of a group on memory that peers can map: a Program, run over the boards. Nothing is allocated in a run, except the first
// time for ordinary buffers: a stand-in in symmetric memory (places.hpp), the programs of slices (slices.hpp), or room for what the
// kernel reads of the peers'.
//
// Cost on two cores: a step that finds its data ready takes some tens of ns beside its copying; what remains is the time a line of
// cache takes from core to core.
#pragma once
#include "collectives/backends/mapped/group.hpp"
#include "collectives/backends/mapped/places.hpp"
#include "collectives/backends/mapped/slices.hpp"

namespace chorale::mapped {

class MappedOperation final : public Operation {
 public:
  MappedOperation(MappedGroup& group, const Plan& plan);

  void start(const Run& run) override;
  bool progress() override;
  std::uint64_t moved() const override { return moved_; }
  void examine() override;
  void abandon() noexcept override;
  bool may_be_written() noexcept override;
  bool may_be_read() noexcept override { return may_be_written(); }

 private:
  struct Peer {
    std::uint64_t known = 0, met = 0;  // in which call; in which of this operation's parts
    const Slot* slot = nullptr;
    Whereabouts where = {};
    std::byte* mapped[3] = {};  // the same, as seen from here; null where it is not mapped
  };

  bool go_on();
  bool enter();
  bool agree();
  void begin(const Part& part, std::int64_t first);
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
  void leave();

  const std::byte* seen(const Spot& spot) const;  // null when it is not mapped
  std::byte* own(const Spot& spot) const { return places_.of(spot.place) + spot.first * element_; }
  std::byte* there(const Spot& spot) const {  // where it is mapped
    const Peer& other = peers_[static_cast<std::size_t>(spot.rank)];
    const int which = static_cast<int>(spot.place);
    return other.mapped[which] + (spot.first + (other.where.stays[which] ? 0 : first_)) * element_;
  }
  bool may_be_cut() const { return slices_.worth_it() && !whole_.program.staged; }
  Peer& peer(int rank) { return peers_[static_cast<std::size_t>(rank)]; }
  bool written_to(int rank) { return peer(rank).mapped[static_cast<int>(Place::output)] != nullptr; }

  MappedGroup& group_;
  const Plan plan_;
  const std::int64_t element_;
  const bool streams_;  // the data of all ranks together are more than the last-level cache holds
  const Part whole_;
  Slices slices_;
  Places places_;
  std::vector<Peer> peers_;
  std::vector<char> done_;
  std::vector<std::uint64_t> words_;  // of this part, as shown on the board
  std::vector<const void*> sources_;
  std::vector<void*> targets_;
  Buffer room_;

  // Of the run:
  Run run_;
  Slot* slot_ = nullptr;
  bool running_ = false, entered_ = false, agreed_ = false, in_slices_ = false, own_output_mapped_ = false;

  // Of the part that is run:
  const Part* part_ = nullptr;
  std::int64_t slice_ = 0, first_ = 0;  // its number, and its first element
  std::uint64_t moved_ = 0;
  std::uint64_t parts_ = 0, tag_ = 0, first_tag_ = 0;  // how many there have been; of this part; of the call's first
  std::size_t first_open_ = 0, at_the_end_ = 0;
  bool unshown_ = false, given_back_ = false;
};

}  // namespace chorale::mapped
