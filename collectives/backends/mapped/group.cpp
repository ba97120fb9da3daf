#include "collectives/backends/mapped/group.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "collectives/backends/mapped/operation.hpp"
#include "collectives/transport/call_errors.hpp"
#include "src/base/error.hpp"
#include "src/base/guard/flight_page.hpp"

namespace chorale::mapped {

MappedGroup::MappedGroup(std::shared_ptr<FlagPages> pages, Membership membership, Buffer page)
    : site_(std::move(pages)), membership_(std::move(membership)), page_(std::move(page)) {
  for (int r = 0; r < size(); ++r)
    pages_.push_back(static_cast<FlagPage*>(
        r == rank() ? page_.data()
                    : reach().map(world_rank(r), static_cast<Location>(membership_.offers[static_cast<std::size_t>(r)]))));
}

// A pair is a group of two ranks for point-to-point messages in one direction. Each of the two ranks creates its own side of
// the pair at first use. A rank announces the location of its new flag page on its flag page in the parent group.
MappedGroup::MappedGroup(MappedGroup& parent, int from, int to)
    : site_(parent.site_), page_(site_->create(2)), pages_(2, nullptr) {
  const bool sends = parent.rank() == from;
  const int other = sends ? to : from;
  membership_ = {{parent.world_rank(from), parent.world_rank(to)}, sends ? 0 : 1, parent.membership_.id, {}};
  pages_[static_cast<std::size_t>(rank())] = &own();
  Member& told = member(parent.own(), other);
  Member& heard = member(*parent.page_of(other), parent.rank());
  announced_ = sends ? &heard.from : &heard.to;
  left_parent_ = &told.gone;
  store_release(sends ? told.to : told.from, reach().locate(page_.data()));
}

// Peers could still read sent data on this rank's flag page, so the flag page stays allocated until all other members have
// left too. The farewell is this rank's last access to a peer's flag page, because the peer can free its flag page
// afterwards. In a pair, the other rank might have left before this rank created its side. If the other rank has left, the
// other rank's flag page shows `left`. Only `left`, not `leaving`, guarantees that the other rank will never access this
// rank's flag page again. If the other rank of a pair is still `leaving`, or never creates its side, this rank's flag page
// stays allocated.
MappedGroup::~MappedGroup() {
  store_release(member(own(), rank()).gone, leaving);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (int r = 0; r < size(); ++r) {
    FlagPage* page = page_of(r);
    if (!page || r == rank()) continue;
    if (announced_ && load_acquire(member(*page, r).gone) == left) store_release(member(own(), r).gone, left);
    store_release(member(*page, rank()).gone, left);
  }
  store_release(member(own(), rank()).gone, left);
  site_->free_later(std::move(page_), size());
}

std::unique_ptr<Operation> MappedGroup::prepare(const Plan& plan) {
  const std::vector<Schedule> ranks = schedules_of(plan);
  const std::int64_t element = size_of(plan.dtype);
  if (is_eager(ranks, element))
    return eager_operation(*this, plan, compile(StepGraph(ranks), plan.problem.rank, cells_for(element)));
  StagingRule staging{.line_elements = line_bytes / element};
  if (reach().has_kernel_copies()) staging.most_elements = reach().staged_up_to / element;
  return mapped_operation(*this, plan, compile(StepGraph(ranks), plan.problem.rank, staging));
}

std::unique_ptr<Group> MappedGroup::pair(int from, int to) {
  return std::unique_ptr<Group>(new MappedGroup(*this, from, to));
}

FlagPage* MappedGroup::page_of(int rank) {
  FlagPage*& page = pages_[static_cast<std::size_t>(rank)];
  if (!page && announced_)
    if (const Location location = load_acquire(*announced_))
      page = static_cast<FlagPage*>(reach().map(world_rank(rank), location));
  return page;
}

bool MappedGroup::may_enter(std::uint64_t sequence) {
  if (sequence <= all_finished_ + slots) return true;
  std::uint64_t slowest = ~std::uint64_t{0};
  for (int r = 0; r < size(); ++r) {
    const FlagPage* page = page_of(r);
    slowest = std::min(slowest, page ? load_acquire(page->finished) : 0);
  }
  all_finished_ = slowest;
  return sequence <= all_finished_ + slots;
}

int MappedGroup::slowest() {
  const auto finished_by = [&](int r) { return page_of(r) ? load_acquire(page_of(r)->finished) : 0; };
  int slowest = 0;
  for (int r = 1; r < size(); ++r)
    if (finished_by(r) < finished_by(slowest)) slowest = r;
  return slowest;
}

void MappedGroup::finished(std::uint64_t sequence) {
  if (sequence != own_finished_ + 1) {
    out_of_order_ |= std::uint64_t{1} << (sequence - own_finished_ - 2);
    return;
  }
  for (++own_finished_; out_of_order_ & 1; ++own_finished_) out_of_order_ >>= 1;
  out_of_order_ >>= 1;
  store_release(own().finished, own_finished_);
}

void MappedGroup::say(Slot& slot, const Plan& plan) {
  std::uint64_t& said = said_[&slot - own().slot];
  if (said == plan.signature) return;
  said = plan.signature;
  put(slot.call, plan.words);
}

// This rank has abandoned its calls. A rank accesses other ranks' memory only within calls, so this rank can set `closed`
// now.
void MappedGroup::poison(const std::string& why) noexcept {
  store_release(own().closed, 1);
  // If a member gave up first, all members already see that member's reason, and this rank's error would only repeat it.
  if (std::ranges::any_of(pages_, [](const FlagPage* page) { return page && load_acquire(page->poisoned); })) return;
  FlagPage& page = own();
  put(page.why, why);
  store_release(page.poisoned, 1);
}

// Compares this rank's newest call with the newest calls of members that are leaving or have left. If two ranks leave at the
// same time, at least one of the two ranks sees that the other rank is leaving. A member's flag page stays allocated until
// this rank writes its farewell, in the destructor. In a pair, the receiver has waited for every message of the sender, so
// no calls are left to compare.
void MappedGroup::leave() {
  store_release(member(own(), rank()).gone, leaving);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (int r = 0; r < size(); ++r) {
    FlagPage* page = announced_ || r == rank() ? nullptr : page_of(r);
    if (page && load_acquire(member(*page, r).gone) && !load_acquire(page->closed)) compare_newest(r);
  }
}

// Compares the newest call that both ranks have finished, unless one of the two ranks has already reused the call's slot.
void MappedGroup::compare_newest(int other) {
  const FlagPage& theirs = *page_of(other);
  const std::uint64_t made = load_acquire(theirs.finished), both = std::min(made, own_finished_);
  if (both == 0 || std::max(made, own_finished_) - both >= slots) return;
  const std::uint64_t ours = own().slot[both % slots].history, history = load_acquire(theirs.slot[both % slots].history);
  if (ours != 0 && history != 0 && history != abandoned && ours != history) throw_calls_differ(other, both);
}

// Called if call `sequence` is mismatched. The flag pages also describe up to seven earlier calls. The error names the first
// mismatched call among these calls.
void MappedGroup::throw_calls_differ(int other, std::uint64_t sequence) {
  const auto slot_in = [](const FlagPage& page, std::uint64_t number) -> const Slot& { return page.slot[number % slots]; };
  const FlagPage& theirs = *page_of(other);
  for (int back = 1; back < slots && sequence > 1; ++back, --sequence)
    if (slot_in(own(), sequence - 1).history == load_acquire(slot_in(theirs, sequence - 1).history)) break;
  chorale::throw_calls_differ(sequence, {world_rank(rank()), slot_in(own(), sequence).call},
                              {world_rank(other), slot_in(theirs, sequence).call});
}

void MappedGroup::throw_if_calls_differ(std::uint64_t sequence, std::uint64_t history) {
  for (int r = 0; r < size(); ++r) {
    const FlagPage* page = page_of(r);
    if (!page || !has_reached(load_acquire(page->slot[sequence % slots].word), tag_of(sequence))) continue;
    const std::uint64_t theirs = load_acquire(page->slot[sequence % slots].history);
    if (theirs != abandoned && theirs != history) throw_calls_differ(r, sequence);
  }
}

bool MappedGroup::is_at(int rank, std::uint64_t sequence) {
  const FlagPage* page = page_of(rank);
  if (!page || load_acquire(page->closed) || load_acquire(member(own(), rank).gone)) return false;
  return has_reached(load_acquire(page->slot[sequence % slots].word), tag_of(sequence)) &&
         load_acquire(page->finished) < sequence;
}

// A member that has left has finished all its calls, and its flag page stays allocated until this rank leaves too. In a
// pair, the other rank can leave the parent group without creating its side of the pair. In this case, the other rank has
// made no calls in the pair.
void MappedGroup::throw_if_left(std::uint64_t sequence, const std::string& words) {
  for (int r = 0; r < size(); ++r) {
    if (r == rank() || !(load_acquire(member(own(), r).gone) || (left_parent_ && load_acquire(*left_parent_)))) continue;
    const FlagPage* page = page_of(r);
    const std::uint64_t made = page ? load_acquire(page->finished) : 0;
    if (made < sequence) throw_left(world_rank(r), made, world_rank(rank()), sequence, words);
  }
}

void MappedGroup::throw_if_poisoned() {
  for (int r = 0; r < size(); ++r)
    if (const FlagPage* page = page_of(r); page && load_acquire(page->poisoned))
      throw_gave_up(fmt::format("rank {} of the group gave up", r), page->why);
}

}  // namespace chorale::mapped
