#include "collectives/backends/mapped/operation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>

#include "src/base/error.hpp"
#include "src/base/host.hpp"
#include "src/math/copy.hpp"

namespace chorale::mapped {
namespace {

constexpr int input = static_cast<int>(Place::input), output = static_cast<int>(Place::output);
constexpr int scratch = static_cast<int>(Place::scratch);
constexpr std::int64_t afar_bytes = 128 << 10;     // read at once from memory that is not mapped: stays in the second cache
constexpr std::int64_t streamed_bytes = 16 << 10;  // summed at once: stays in the first

bool fills_caches(const Plan& plan) {
  const Problem& p = plan.problem;
  const std::int64_t vectors = p.in_place ? 1 : 2;
  return vectors * p.size * std::max(p.blocks.total(), p.taken.total()) * size_of(plan.dtype) > last_level_cache_bytes();
}

}  // namespace

MappedOperation::MappedOperation(MappedGroup& group, const Plan& plan)
    : group_(group),
      plan_(plan),
      element_(size_of(plan.dtype)),
      streams_(fills_caches(plan)),
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
  const auto bytes_of = [&](int which) {  // in place both lie in one vector
    const std::int64_t vector = std::max(homes[input] + counts[input], homes[output] + counts[output]);
    return (p.in_place ? vector : counts[which]) * element_;
  };
  for (const int which : {input, output}) {
    const bool worth_a_copy = !reach.can_read() || bytes_of(which) <= reach.copied_up_to;
    stands_in_[which] = !(reach.locate(place_[which]) & is_mapped) && counts[which] > 0 && worth_a_copy;
    if (!stands_in_[which]) continue;
    Buffer& buffer = stand_in_[p.in_place ? input : which];
    if (!buffer.data()) buffer = reach.memory().allocate(bytes_of(which), Category::comm);
    place_[which] = static_cast<std::byte*>(buffer.data()) + (p.in_place ? homes[which] * element_ : 0);
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
  if (slot.history != run_.history && slot.history != 0 && run_.history != 0) [[unlikely]]
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
        if (written_to(spot.rank)) copy(there(spot), own(action.from[0]), action.count * element_);
      return;
    case Kind::copy: return copy(own(action.into), own(action.from[0]), action.count * element_);
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

void MappedOperation::copy(void* to, const void* from, std::int64_t bytes) const {
  const std::less_equal<const void*> before;
  const bool apart =
      before(static_cast<const std::byte*>(from) + bytes, to) || before(static_cast<std::byte*>(to) + bytes, from);
  if (streams_ && apart)
    stream(to, from, bytes);
  else
    std::memmove(to, from, static_cast<std::size_t>(bytes));
}

void MappedOperation::read(const Spot& spot, std::int64_t first, std::int64_t count, void* into) {
  const Location base = peer(spot.rank).location[static_cast<int>(spot.place)];
  group_.reach().read(group_.world_rank(spot.rank), base + static_cast<Location>((spot.first + first) * element_), into,
                      count * element_);
}

void MappedOperation::take(const Action& action) {
  if (action.written && own_output_mapped_) return;
  const Spot& spot = action.from[0];
  if (const std::byte* source = seen(spot))
    copy(own(action.into), source, action.count * element_);
  else
    read(spot, 0, action.count, own(action.into));
}

// At once where all is mapped; else in pieces, of which what is not mapped is read first. Past the caches a piece is summed within them
// and then streamed to where it belongs, unless that place was one of the sources and is in the caches anyway.
void MappedOperation::sum(const Action& action) {
  const bool all_mapped = std::all_of(action.from.begin(), action.from.end(), [&](const Spot& spot) { return seen(spot); });
  const bool streams = streams_ && !plan_.problem.in_place;
  const std::int64_t piece = !all_mapped ? afar_bytes / element_ : streams ? streamed_bytes / element_ : action.count;
  if ((!all_mapped || piece < action.count) && !room_.data())
    room_ = group_.reach().memory().allocate(afar_bytes * static_cast<std::int64_t>(sources_.size() + 1), Category::comm);
  const auto room = [&](std::size_t s) {
    return static_cast<std::byte*>(room_.data()) + static_cast<std::int64_t>(s) * afar_bytes;
  };
  const std::size_t addends = action.from.size();
  for (std::int64_t first = 0; first < action.count; first += piece) {
    const std::int64_t here = std::min(piece, action.count - first);
    for (std::size_t s = 0; s < addends; ++s) {
      const std::byte* mapped = seen(action.from[s]);
      if (!mapped) read(action.from[s], first, here, room(s));
      sources_[s] = mapped ? mapped + first * element_ : room(s);
    }
    std::size_t targets = 0;
    targets_[targets++] = own(action.into) + first * element_;
    for (const Spot& spot : action.also_into)
      if (written_to(spot.rank)) targets_[targets++] = there(spot) + first * element_;
    const std::span sources(sources_.data(), addends);
    if (!streams || piece >= action.count) {
      reduce(plan_.op, plan_.dtype, std::span(targets_.data(), targets), sources, here);
      continue;
    }
    reduce(plan_.op, plan_.dtype, room(addends), sources, here);
    for (std::size_t t = 0; t < targets; ++t) stream(targets_[t], room(addends), here * element_);
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
