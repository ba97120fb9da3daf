// A MappedOperation runs one collective of a group on mapped memory, if its data are too long for an EagerOperation. The
// operation executes a Program (program.hpp), and ranks show their progress on flag pages (flag_page.hpp).
//
// Only the first run of an operation allocates memory. Peers cannot map ordinary buffers, so for ordinary buffers, the first
// run allocates a stage in symmetric memory (places.hpp), or memory for data that the operating system copies. If the
// vectors to be summed exceed the caches, the first run also allocates memory for one segment of the sum.
//
// Cost on two cores: a step whose data are ready takes some tens of ns in addition to the copy. In addition, a step waits
// until the cache line of the peer's flag page is transferred from core to core.
#pragma once
#include "collectives/backends/mapped/group.hpp"
#include "collectives/backends/mapped/places.hpp"
#include "collectives/backends/mapped/program.hpp"

namespace chorale::mapped {

class MappedOperation final : public Operation {
 public:
  MappedOperation(MappedGroup& group, const Plan& plan, Program program);

  void start(const Run& run) override;
  bool progress() override;
  std::uint64_t moved() const override { return moved_; }
  void examine() override;
  int awaits() override;
  void abandon() noexcept override;
  bool may_be_written() noexcept override;
  bool may_be_read() noexcept override { return may_be_written(); }

 private:
  struct Peer {
    std::uint64_t known = 0;     // the newest call that the peer is known to have begun
    const Slot* slot = nullptr;  // the current call's slot on the peer's flag page
    Whereabouts where = {};
    std::byte* mapped[3] = {};  // indexed by Place: this process's address of the peer's buffer; null if not mapped
    std::byte* stage = nullptr;
  };

  bool enter();  // occupies this call's slot; returns false if another member still uses the slot
  bool go_on();
  bool meet(int rank);  // whether `rank` has begun this call; throws if `rank` made a mismatched call
  bool has_happened(const Event& event);
  bool all_happened(const std::vector<Event>& events);
  bool ready(const Action& action);
  void perform(const Action& action);
  void send(const Action& action);
  void take(const Action& action);
  void sum(const Action& action);
  void copy(void* to, const void* from, std::int64_t bytes) const;
  void read(const Spot& spot, std::int64_t first, std::int64_t count, void* into);
  void write(const Spot& spot, std::int64_t first, std::int64_t count, const void* from);
  void publish(std::size_t a);  // marks step `a` as done; peers see marks in word 0 after flush(), others at once
  void flush();
  bool finish();
  void leave();
  int awaited_by(const Action& action);

  const std::byte* seen(const Spot& spot) const;  // address of sent data, or null if the kernel must copy them
  std::byte* own(const Spot& spot) const { return places_.of(spot.place) + spot.first * element_; }
  std::byte* there(const Spot& spot) const {  // address of a mapped spot in a different rank's memory
    return peers_[static_cast<std::size_t>(spot.rank)].mapped[static_cast<int>(spot.place)] + spot.first * element_;
  }
  Peer& peer(int rank) { return peers_[static_cast<std::size_t>(rank)]; }
  // Whether a sender can write `count` elements to a receiver's output. Sender and receiver decide alike.
  bool can_write(bool output_is_mapped, std::int64_t count) const {
    return output_is_mapped || (kernel_copies_ && count > program_.staged_elements);
  }
  bool writes_to(int rank, std::int64_t count) { return can_write(peer(rank).mapped[output], count); }
  bool is_written(const Action& action) const {
    return action.written && can_write(places_.is_mapped_here(Place::output), action.count);
  }

  MappedGroup& group_;
  const Plan plan_;
  const std::int64_t element_;
  const bool streams_;  // whether stores are non-temporal, because the data of all ranks exceed the last-level cache
  const bool kernel_copies_;
  const Program program_;
  BufferPlaces places_;
  std::vector<Peer> peers_;
  std::vector<char> done_;
  std::vector<std::uint64_t> words_;  // copies of the words that show this call's steps on this rank's flag page
  std::vector<const void*> sources_;
  std::vector<void*> targets_;
  Buffer room_;

  // The current run:
  Run run_;
  Slot* slot_ = nullptr;
  bool running_ = false, entered_ = false, unshown_ = false;
  std::uint64_t moved_ = 0, tag_ = 0;
  std::size_t first_open_ = 0, at_the_end_ = 0;
};

}  // namespace chorale::mapped
