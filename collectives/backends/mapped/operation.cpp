#include "collectives/backends/mapped/operation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "src/base/error.hpp"

namespace chorale::mapped {
namespace {

constexpr int input = static_cast<int>(Place::input), output = static_cast<int>(Place::output);
constexpr int scratch = static_cast<int>(Place::scratch);
// Ordinary buffers up to this size are copied into symmetric memory and back, which is faster than having the kernel read them (it pins
// pages); larger ones are not, to spare memory.
constexpr std::int64_t copied_up_to = 64 << 20;
constexpr std::int64_t afar_bytes = 128 << 10;  // read at once from memory that is not mapped: stays in the second cache

}  // namespace

MappedOperation::MappedOperation(MappedGroup& group, const Plan& plan)
    : group_(group),
      plan_(plan),
      element_(size_of(plan.dtype)),
      program_(compile(schedules_of(plan), plan.problem.rank, stage_bytes / size_of(plan.dtype))) {
  const std::size_t steps = program_.actions.size();
  require(steps <= static_cast<std::size_t>(words) * bits_of_word, "{} has {} steps, which a board has no room for",
          plan.words, steps);
  peers_.resize(static_cast<std::size_t>(group.size()));
  done_.resize(steps);
  words_.resize(steps / bits_of_word + 1);
  std::size_t most_sources = 1, most_targets = 1;
  for (const Action& action : program_.actions) {
    most_sources = std::max(most_sources, action.from.size());
    most_targets = std::max(most_targets, action.also_into.size() + 1);
  }
  sources_.resize(most_sources);
  targets_.resize(most_targets);
  if (program_.scratch_count > 0)
    scratch_ = group.reach().memory().allocate(program_.scratch_count * element_, Category::comm);
  place_[scratch] = static_cast<std::byte*>(scratch_.data());
}

void MappedOperation::start(const Run& run) {
  require(!running_, "{} is started before it is over", plan_.words);
  run_ = run;
  tag_ = (run.sequence / slots + 1) << bits_of_word;
  first_open_ = at_the_end_ = 0;
  running_ = true;
  entered_ = false;
}

bool MappedOperation::progress() {
  if (!running_) return true;
  if (!entered_ && !enter()) return false;
  const std::size_t steps = program_.actions.size();
  for (std::size_t a = first_open_; a < steps; ++a) {
    if (!done_[a]) {
      const Action& action = program_.actions[a];
      const bool takes_time = action.kind != Kind::send || !action.also_into.empty();
      if (unshown_ && takes_time) flush();  // others wait for it
      if (!ready(action)) continue;
      perform(action);
      done_[a] = 1;
      if (action.shown) publish(a);
    }
    if (a == first_open_) ++first_open_;
  }
  if (unshown_) flush();
  return first_open_ == steps && finish();
}

bool MappedOperation::enter() {
  if (!group_.may_enter(run_.sequence)) return false;
  slot_ = &group_.own().slot[run_.sequence % slots];
  slot_->history = run_.history;
  std::fill(done_.begin(), done_.end(), 0);
  std::fill(words_.begin(), words_.end(), tag_);
  for (const int other : program_.meets) peer(other).met = false;
  place_[input] = static_cast<std::byte*>(run_.input);
  place_[output] = static_cast<std::byte*>(run_.output);
  if (!program_.staged) place_buffers();
  group_.say(*slot_, plan_);
  entered_ = unshown_ = true;
  return true;
}

// Peers must find the buffers: where they lie if they are mapped or may be read, else in a stand-in that is.
void MappedOperation::place_buffers() {
  const Problem& p = plan_.problem;
  const std::int64_t counts[2] = {p.input_count(), p.output_count()}, homes[2] = {p.input_home(), p.output_home()};
  Reach& reach = group_.reach();
  for (const int which : {input, output}) {
    const Location location = reach.locate(place_[which]);
    const bool mapped = location & is_mapped;
    const bool worth_a_copy = !reach.can_read() || counts[which] * element_ <= copied_up_to;
    stands_in_[which] = !mapped && counts[which] > 0 && worth_a_copy;
    if (!stands_in_[which]) continue;
    const bool shared = p.in_place;  // one vector, so one stand-in
    Buffer& buffer = stand_in_[shared ? input : which];
    if (!buffer.data())
      buffer = reach.memory().allocate((shared ? p.blocks.total() : counts[which]) * element_, Category::comm);
    place_[which] = static_cast<std::byte*>(buffer.data()) + (shared ? homes[which] * element_ : 0);
    if (which == input) std::memcpy(place_[input], run_.input, static_cast<std::size_t>(counts[input] * element_));
  }
  Location locations[3];
  for (const int which : {input, output, scratch}) locations[which] = reach.locate(place_[which]);
  own_output_mapped_ = locations[output] & is_mapped;
  std::memcpy(slot_->stage, locations, sizeof locations);
}

bool MappedOperation::meet(int rank) {
  Peer& other = peer(rank);
  if (other.met) return true;
  Board* board = group_.board_of(rank);
  if (!board) return false;
  const Slot& slot = board->slot[run_.sequence % slots];
  if (tag_in(look(slot.word)) != tag_) return false;
  if (slot.history != run_.history) [[unlikely]]
    group_.throw_parted(rank, run_.sequence);
  other.met = true;
  other.slot = &slot;
  if (!program_.staged) {
    std::memcpy(other.location, slot.stage, sizeof other.location);
    for (const int which : {input, output, scratch})
      other.mapped[which] = static_cast<std::byte*>(group_.reach().map(group_.world_rank(rank), other.location[which]));
  }
  return true;
}

bool MappedOperation::has_happened(const Event& event) {
  if (!meet(event.rank)) return false;
  if (event.only_if_read && written_to(event.rank)) return true;
  const std::uint64_t word = look(word_of(*peer(event.rank).slot, event.step / bits_of_word));
  return tag_in(word) == tag_ && (word & bit_of(event.step));
}

bool MappedOperation::all_happened(const std::vector<Event>& events) {
  return std::all_of(events.begin(), events.end(), [&](const Event& event) { return has_happened(event); });
}

bool MappedOperation::ready(const Action& action) {
  if (!(action.written && own_output_mapped_)) {
    for (const int before : action.after)
      if (!done_[static_cast<std::size_t>(before)]) return false;
    if (!all_happened(action.readers)) return false;
  }
  if (!all_happened(action.events)) return false;
  return std::all_of(action.also_into.begin(), action.also_into.end(), [&](const Spot& s) { return meet(s.rank); });
}

void MappedOperation::perform(const Action& action) {
  const auto bytes = static_cast<std::size_t>(action.count * element_);
  switch (action.kind) {
    case Kind::send:
      if (program_.staged) std::memcpy(slot_->stage + action.from[0].staged * element_, own(action.from[0]), bytes);
      for (const Spot& spot : action.also_into)
        if (written_to(spot.rank)) std::memcpy(there(spot), own(action.from[0]), bytes);
      return;
    case Kind::copy: std::memmove(own(action.into), own(action.from[0]), bytes); return;
    case Kind::recv: return take(action);
    case Kind::recv_reduce:
    case Kind::reduce: return sum(action);
  }
}

const std::byte* MappedOperation::seen(const Spot& spot) const {
  if (spot.rank == group_.rank()) return own(spot);
  const Peer& other = peers_[static_cast<std::size_t>(spot.rank)];
  if (spot.staged >= 0) return other.slot->stage + spot.staged * element_;
  const std::byte* base = other.mapped[static_cast<int>(spot.place)];
  return base ? base + spot.first * element_ : nullptr;
}

void MappedOperation::take(const Action& action) {
  if (action.written && own_output_mapped_) return;
  const Spot& spot = action.from[0];
  const auto bytes = action.count * element_;
  if (const std::byte* source = seen(spot))
    std::memcpy(own(action.into), source, static_cast<std::size_t>(bytes));
  else
    group_.reach().read(
        group_.world_rank(spot.rank),
        peer(spot.rank).location[static_cast<int>(spot.place)] + static_cast<Location>(spot.first * element_),
        own(action.into), bytes);
}

void MappedOperation::sum(const Action& action) {
  for (std::size_t s = 0; s < action.from.size(); ++s)
    if (!(sources_[s] = seen(action.from[s]))) return sum_from_afar(action);
  std::size_t targets = 0;
  targets_[targets++] = own(action.into);
  for (const Spot& spot : action.also_into)
    if (written_to(spot.rank)) targets_[targets++] = there(spot);
  reduce(plan_.op, plan_.dtype, std::span(targets_.data(), targets), std::span(sources_.data(), action.from.size()),
         action.count);
}

// In pieces, of which the parts that cannot be mapped are read first.
void MappedOperation::sum_from_afar(const Action& action) {
  if (!from_afar_.data())
    from_afar_ = group_.reach().memory().allocate(afar_bytes * static_cast<std::int64_t>(sources_.size()), Category::comm);
  const std::int64_t piece = afar_bytes / element_;
  for (std::int64_t first = 0; first < action.count; first += piece) {
    const std::int64_t here = std::min(piece, action.count - first);
    for (std::size_t s = 0; s < action.from.size(); ++s) {
      const Spot& spot = action.from[s];
      if (const std::byte* mapped = seen(spot)) {
        sources_[s] = mapped + first * element_;
        continue;
      }
      std::byte* room = static_cast<std::byte*>(from_afar_.data()) + static_cast<std::int64_t>(s) * afar_bytes;
      const Location base = peer(spot.rank).location[static_cast<int>(spot.place)];
      group_.reach().read(group_.world_rank(spot.rank), base + static_cast<Location>((spot.first + first) * element_), room,
                          here * element_);
      sources_[s] = room;
    }
    std::size_t targets = 0;
    targets_[targets++] = own(action.into) + first * element_;
    for (const Spot& spot : action.also_into)
      if (written_to(spot.rank)) targets_[targets++] = there(spot) + first * element_;
    reduce(plan_.op, plan_.dtype, std::span(targets_.data(), targets), std::span(sources_.data(), action.from.size()), here);
  }
}

void MappedOperation::publish(std::size_t a) {
  const int word = static_cast<int>(a) / bits_of_word;
  std::uint64_t& shown = words_[static_cast<std::size_t>(word)];
  shown |= bit_of(static_cast<int>(a));
  if (word == 0)
    unshown_ = true;
  else
    show(word_of(*slot_, word), shown);
}

void MappedOperation::flush() {
  show(slot_->word, words_[0]);
  unshown_ = false;
}

bool MappedOperation::finish() {
  for (; at_the_end_ < program_.at_the_end.size(); ++at_the_end_)
    if (!has_happened(program_.at_the_end[at_the_end_])) return false;
  if (!program_.staged && stands_in_[output])
    std::memcpy(run_.output, place_[output], static_cast<std::size_t>(plan_.problem.output_count() * element_));
  running_ = false;
  group_.finished(run_.sequence);
  __builtin_prefetch(&group_.own().slot[(run_.sequence + 1) % slots],
                     1);  // peers have looked at this line: it must be won back
  return true;
}

}  // namespace chorale::mapped
