// A MappedOperation runs one collective of a group on mapped memory, if its data are too long for an EagerOperation. The
// operation executes a Program (program.hpp), and ranks show their progress on flag pages (flag_page.hpp).
//
// Only the first run of an operation allocates memory. Peers cannot map ordinary buffers, so for ordinary buffers, the first
// run allocates a stage in symmetric memory (places.hpp), or memory for data that the operating system copies. If the
// vectors to be summed exceed the caches, the first run also allocates memory for one segment of the sum.
//
// Cost on two cores: a step whose data are ready takes some tens of ns in addition to the copy. In addition, a step waits
// until the cache line of the peer's flag page is transferred from core to core.
#include "collectives/backends/mapped/operation.hpp"

#include <algorithm>
#include <cstring>
#include <functional>

#include "collectives/backends/mapped/places.hpp"
#include "src/base/error.hpp"
#include "src/math/copy.hpp"

namespace chorale::mapped {
namespace {

// The size of segments that the kernel copies for a sum. A segment of this size fits into the L2 cache.
constexpr std::int64_t afar_bytes = 128 << 10;
// The size of segments that are summed, then written by non-temporal stores. A segment of this size fits into the L1 cache.
constexpr std::int64_t streamed_bytes = 16 << 10;

bool fills(std::int64_t cache_bytes, const Plan& plan) {
  const Problem& p = plan.problem;
  const std::int64_t vectors = p.in_place ? 1 : 2;
  return vectors * p.size * std::max(p.blocks.total(), p.taken.total()) * size_of(plan.dtype) > cache_bytes;
}

class MappedOperation final : public ProgramOperation {
 public:
  MappedOperation(MappedGroup& group, const Plan& plan, Program program)
      : ProgramOperation(group, plan, std::move(program)),
        streams_(fills(group.reach().cache_bytes, plan)),
        kernel_copies_(group.reach().has_kernel_copies()),
        places_(group.reach(), plan, program_.scratch_count, program_.lines) {
    const std::size_t steps = program_.actions.size();
    require(steps <= index(words) * bits_of_word, "{} has {} steps, too many for mapped memory", plan.words, steps);
    peers_.resize(index(group.size()));
    done_.resize(steps);
    words_.resize(steps / bits_of_word + 1);
    std::size_t most_targets = 1;
    for (const Action& action : program_.actions) most_targets = std::max(most_targets, action.also_into.size() + 2);
    targets_.resize(most_targets);
  }

  bool progress() override {
    if (!running_) return true;
    if (!entered_ && !enter()) return false;
    if (!go_on() || !finish()) return false;
    leave_slot();
    return true;
  }

  int awaits() override {
    if (!running_) return -1;
    if (!entered_) return group_.slowest();
    for (std::size_t a = first_open_; a < program_.actions.size(); ++a)
      if (!done_[a])
        if (const int rank = awaited_by(program_.actions[a]); rank >= 0) return rank;
    return at_the_end_ < program_.at_the_end.size() ? program_.at_the_end[at_the_end_].rank : -1;
  }

  bool may_be_written() noexcept override {
    if (!running_ || !entered_) return false;
    for (int r = 0; r < group_.size(); ++r)
      if (r != group_.rank() && group_.is_at(r, run_.sequence)) return true;
    return false;
  }

  bool may_be_read() noexcept override { return may_be_written(); }

 private:
  struct Peer {
    std::uint64_t known = 0;     // the newest call that the peer is known to have begun
    const Slot* slot = nullptr;  // the current call's slot on the peer's flag page
    Whereabouts where = {};
    std::byte* mapped[3] = {};  // indexed by Place: this process's address of the peer's buffer; null if not mapped
    std::byte* stage = nullptr;
  };

  bool enter() {
    if (!enter_slot()) return false;
    const Whereabouts& where = places_.find(run_);
    std::memcpy(slot_->where, &where, sizeof where);
    std::fill(done_.begin(), done_.end(), 0);
    std::fill(words_.begin(), words_.end(), tag_);
    at_the_end_ = 0;
    unshown_ = true;
    group_.say(*slot_, plan_);
    return entered_ = true;
  }

  // Performs all steps that are ready. Returns true once all steps are done.
  bool go_on() {
    const auto& actions = program_.actions;
    for (std::size_t a = first_open_; a < actions.size(); ++a) {
      if (!done_[a]) {
        const Action& action = actions[a];
        const bool takes_time = action.kind != Kind::send || !action.also_into.empty();
        if (unshown_ && takes_time) flush();  // other ranks could be waiting for the bits of earlier steps
        if (!ready(action)) continue;
        perform(action);
        done_[a] = 1;
        ++moved_;
        if (action.shown) publish(a);
      }
      if (a == first_open_) ++first_open_;
    }
    if (unshown_) flush();
    return first_open_ == actions.size();
  }

  // Whether `rank` has begun this call. Throws if `rank` made a mismatched call.
  bool meet(int rank) {
    Peer& other = peer(rank);
    if (other.known == run_.sequence) return true;
    FlagPage* page = group_.page_of(rank);
    if (!page) return false;
    const Slot& slot = page->slot[run_.sequence % slots];
    if (!has_reached(load_acquire(slot.word), tag_)) return false;
    if (const std::uint64_t history = load_acquire(slot.history); history != run_.history) [[unlikely]] {
      if (history == abandoned) return false;  // examine() will throw an error with the reason
      if (history != 0 && run_.history != 0) group_.throw_calls_differ(rank, run_.sequence);
    }
    other.known = run_.sequence;
    other.slot = &slot;
    std::memcpy(&other.where, slot.where, sizeof other.where);
    const auto map = [&](Location location) {
      return static_cast<std::byte*>(group_.reach().map(group_.world_rank(rank), location));
    };
    for (const int which : {input, output, scratch}) other.mapped[which] = map(other.where.location[which]);
    other.stage = map(other.where.stage);
    return true;
  }

  bool has_happened(const Event& event) {
    if (!meet(event.rank)) return false;
    if (event.written > 0 && writes_to(event.rank, event.written)) return true;
    const std::uint64_t word = load_acquire(word_of(*peer(event.rank).slot, event.step / bits_of_word));
    return tag_in(word) == tag_ && word & bit_of(event.step);
  }

  bool all_happened(const std::vector<Event>& events) {
    return std::all_of(events.begin(), events.end(), [&](const Event& event) { return has_happened(event); });
  }

  bool ready(const Action& action) {
    if (!is_written(action)) {
      for (const int before : action.after)
        if (!done_[index(before)]) return false;
      if (!all_happened(action.readers)) return false;
    }
    if (!all_happened(action.events)) return false;
    return std::all_of(action.also_into.begin(), action.also_into.end(), [&](const Spot& s) { return meet(s.rank); });
  }

  void perform(const Action& action) {
    switch (action.kind) {
      case Kind::send: return send(action);
      case Kind::copy: return copy(own(action.into), own(action.from[0]), action.count * element_);
      case Kind::recv: return take(action);
      case Kind::recv_reduce:
      case Kind::reduce: return sum(action);
    }
  }

  void send(const Action& action) {
    const Spot& spot = action.from[0];
    const std::int64_t bytes = action.count * element_;
    if (action.fill_count > 0 && !places_.is_mapped_here(spot.place))
      std::memcpy(places_.stage() + action.fill.staged * element_, own(action.fill), index(action.fill_count * element_));
    for (const Spot& to : action.also_into)
      if (peer(to.rank).mapped[output])
        copy(there(to), own(spot), bytes);
      else if (writes_to(to.rank, action.count))
        write(to, 0, action.count, own(spot));
  }

  void take(const Action& action) {
    if (is_written(action)) return;
    const Spot& spot = action.from[0];
    if (const std::byte* source = seen(spot))
      copy(own(action.into), source, action.count * element_);
    else
      read(spot, 0, action.count, own(action.into));
  }

  // If all sources and targets are mapped, this function sums in one pass. Otherwise the function sums in segments. For each
  // segment, the kernel reads the data of each unmapped source, then the data of all sources are added, then the kernel
  // writes the sum to unmapped targets. If the vectors exceed the caches, the sum is also computed in segments: each segment
  // is summed in the caches, then written to the targets by non-temporal stores. In an in-place call, non-temporal stores
  // are not worthwhile, because the target is also a source and thus already in the caches.
  void sum(const Action& action) {
    const bool all_seen = std::all_of(action.from.begin(), action.from.end(), [&](const Spot& spot) { return seen(spot); });
    const bool all_mapped = all_seen && std::all_of(action.also_into.begin(), action.also_into.end(),
                                                    [&](const Spot& spot) { return peer(spot.rank).mapped[output]; });
    const bool streams = streams_ && !plan_.problem.in_place;
    const std::int64_t piece = !all_mapped ? afar_bytes / element_ : streams ? streamed_bytes / element_ : action.count;
    if ((!all_seen || (streams && piece < action.count)) && !room_.data())
      room_ = group_.reach().memory().allocate(afar_bytes * static_cast<std::int64_t>(sources_.size() + 1), Category::comm);
    const auto room = [&](std::size_t s) {
      return static_cast<std::byte*>(room_.data()) + static_cast<std::int64_t>(s) * afar_bytes;
    };
    const std::size_t addends = action.from.size();
    for (std::int64_t first = 0; first < action.count; first += piece) {
      const std::int64_t here = std::min(piece, action.count - first);
      for (std::size_t s = 0; s < addends; ++s) {
        const std::byte* source = seen(action.from[s]);
        if (!source) read(action.from[s], first, here, room(s));
        sources_[s] = source ? source + first * element_ : room(s);
      }
      std::size_t targets = 0;
      targets_[targets++] = own(action.into) + first * element_;
      if (action.also_staged >= 0 && !places_.is_mapped_here(action.into.place))
        targets_[targets++] = places_.stage() + (action.also_staged + first) * element_;
      for (const Spot& spot : action.also_into)
        if (peer(spot.rank).mapped[output]) targets_[targets++] = there(spot) + first * element_;
      const std::span sources(sources_.data(), addends);
      if (!streams || piece >= action.count) {
        reduce(plan_.op, plan_.dtype, std::span(targets_.data(), targets), sources, here);
      } else {
        reduce(plan_.op, plan_.dtype, room(addends), sources, here);
        for (std::size_t t = 0; t < targets; ++t) stream(targets_[t], room(addends), here * element_);
      }
      for (const Spot& spot : action.also_into)
        if (!peer(spot.rank).mapped[output] && writes_to(spot.rank, action.count))
          write(spot, first, here, own(action.into) + first * element_);
    }
  }

  void copy(void* to, const void* from, std::int64_t bytes) const {
    const std::less_equal<const void*> before;
    const bool apart =
        before(static_cast<const std::byte*>(from) + bytes, to) || before(static_cast<std::byte*>(to) + bytes, from);
    if (streams_ && apart)
      stream(to, from, bytes);
    else
      std::memmove(to, from, index(bytes));
  }

  void read(const Spot& spot, std::int64_t first, std::int64_t count, void* into) {
    const Location base = peer(spot.rank).where.location[static_cast<int>(spot.place)];
    group_.reach().read(group_.world_rank(spot.rank), base + static_cast<Location>((spot.first + first) * element_), into,
                        count * element_);
  }

  void write(const Spot& spot, std::int64_t first, std::int64_t count, const void* from) {
    const Location base = peer(spot.rank).where.location[static_cast<int>(spot.place)];
    group_.reach().write(group_.world_rank(spot.rank), base + static_cast<Location>((spot.first + first) * element_), from,
                         count * element_);
  }

  // Marks step `a` as done. Peers see marks in word 0 after flush(), others at once.
  void publish(std::size_t a) {
    const int word = static_cast<int>(a) / bits_of_word;
    std::uint64_t& shown = words_[index(word)];
    shown |= bit_of(static_cast<int>(a));
    if (word == 0)
      unshown_ = true;
    else
      store_release(word_of(*slot_, word), shown);
  }

  void flush() {
    store_release(slot_->word, words_[0]);
    unshown_ = false;
  }

  // Returns true once no other rank reads this rank's memory.
  bool finish() {
    for (; at_the_end_ < program_.at_the_end.size(); ++at_the_end_)
      if (!has_happened(program_.at_the_end[at_the_end_])) return false;
    return true;
  }

  int awaited_by(const Action& action) {
    for (const auto* events : {&action.events, &action.readers})
      for (const Event& event : *events)
        if (!has_happened(event)) return event.rank;
    for (const Spot& spot : action.also_into)
      if (!meet(spot.rank)) return spot.rank;
    return -1;
  }

  // The address of sent data, or null if the kernel must copy them.
  const std::byte* seen(const Spot& spot) const {
    if (spot.rank == group_.rank()) return own(spot);
    const Peer& other = peers_[index(spot.rank)];
    if (other.mapped[static_cast<int>(spot.place)]) return there(spot);
    return spot.staged >= 0 ? other.stage + spot.staged * element_ : nullptr;
  }

  std::byte* own(const Spot& spot) const { return places_.of(spot.place) + spot.first * element_; }
  std::byte* there(const Spot& spot) const {  // address of a mapped spot in a different rank's memory
    return peers_[index(spot.rank)].mapped[static_cast<int>(spot.place)] + spot.first * element_;
  }
  Peer& peer(int rank) { return peers_[index(rank)]; }
  // Whether a sender can write `count` elements to a receiver's output. Sender and receiver decide alike.
  bool can_write(bool output_is_mapped, std::int64_t count) const {
    return output_is_mapped || (kernel_copies_ && count > program_.staged_elements);
  }
  bool writes_to(int rank, std::int64_t count) { return can_write(peer(rank).mapped[output], count); }
  bool is_written(const Action& action) const {
    return action.written && can_write(places_.is_mapped_here(Place::output), action.count);
  }

  const bool streams_;  // whether stores are non-temporal, because the data of all ranks exceed the last-level cache
  const bool kernel_copies_;
  BufferPlaces places_;
  std::vector<Peer> peers_;
  std::vector<char> done_;
  std::vector<std::uint64_t> words_;  // copies of the words that show this call's steps on this rank's flag page
  std::vector<void*> targets_;
  Buffer room_;

  // The current run:
  bool unshown_ = false;
  std::size_t at_the_end_ = 0;
};

}  // namespace

std::unique_ptr<Operation> mapped_operation(MappedGroup& group, const Plan& plan, Program program) {
  return std::make_unique<MappedOperation>(group, plan, std::move(program));
}

}  // namespace chorale::mapped
