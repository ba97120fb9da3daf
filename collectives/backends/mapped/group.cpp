#include "collectives/backends/mapped/group.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "collectives/backends/mapped/operation.hpp"
#include "collectives/transport/call_errors.hpp"
#include "src/base/error.hpp"

namespace chorale::mapped {

MappedGroup::MappedGroup(std::shared_ptr<Boards> boards, Membership membership, Buffer board)
    : site_(std::move(boards)), membership_(std::move(membership)), board_(std::move(board)) {
  for (int r = 0; r < size(); ++r)
    boards_.push_back(static_cast<Board*>(
        r == rank() ? board_.data()
                    : reach().map(world_rank(r), static_cast<Location>(membership_.offers[static_cast<std::size_t>(r)]))));
}

// A pair is a group of two ranks for point-to-point messages in one direction. Each of the two ranks creates its own side at
// first use. It shows the location of its new board on its board of the parent group.
MappedGroup::MappedGroup(MappedGroup& parent, int from, int to)
    : site_(parent.site_), board_(site_->put_up(2)), boards_(2, nullptr) {
  const bool sends = parent.rank() == from;
  const int other = sends ? to : from;
  membership_ = {{parent.world_rank(from), parent.world_rank(to)}, sends ? 0 : 1, parent.membership_.id, {}};
  boards_[static_cast<std::size_t>(rank())] = &own();
  Member& told = member(parent.own(), other);
  Member& heard = member(*parent.board_of(other), parent.rank());
  announced_ = sends ? &heard.from : &heard.to;
  left_parent_ = &told.gone;
  show(sends ? told.to : told.from, reach().locate(board_.data()));
}

// Peers may still read sent data on this rank's board, so the board stays allocated until all other members have left too.
// The farewell is this rank's last access to another board, because that board may be freed afterwards. The other rank of a
// pair may have left before this rank created its side. Then the other rank's own board says that it has left. Only `left`,
// not `leaving`, says that a rank will never touch this rank's board again. If the other rank of a pair is still `leaving`
// when this rank looks, or never creates its side, this board stays allocated.
MappedGroup::~MappedGroup() {
  show(member(own(), rank()).gone, leaving);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (int r = 0; r < size(); ++r) {
    Board* board = board_of(r);
    if (!board || r == rank()) continue;
    if (announced_ && look(member(*board, r).gone) == left) show(member(own(), r).gone, left);
    show(member(*board, rank()).gone, left);
  }
  show(member(own(), rank()).gone, left);
  site_->take_down(std::move(board_), size());
}

std::unique_ptr<Operation> MappedGroup::prepare(const Plan& plan) { return std::make_unique<MappedOperation>(*this, plan); }

std::unique_ptr<Group> MappedGroup::pair(int from, int to) {
  return std::unique_ptr<Group>(new MappedGroup(*this, from, to));
}

Board* MappedGroup::board_of(int rank) {
  Board*& board = boards_[static_cast<std::size_t>(rank)];
  if (!board && announced_)
    if (const Location location = look(*announced_)) board = static_cast<Board*>(reach().map(world_rank(rank), location));
  return board;
}

bool MappedGroup::may_enter(std::uint64_t sequence) {
  if (sequence <= all_finished_ + slots) return true;
  std::uint64_t slowest = ~std::uint64_t{0};
  for (int r = 0; r < size(); ++r) {
    const Board* board = board_of(r);
    slowest = std::min(slowest, board ? look(board->finished) : 0);
  }
  all_finished_ = slowest;
  return sequence <= all_finished_ + slots;
}

void MappedGroup::finished(std::uint64_t sequence) {
  if (sequence != own_finished_ + 1) {
    out_of_order_ |= std::uint64_t{1} << (sequence - own_finished_ - 2);
    return;
  }
  for (++own_finished_; out_of_order_ & 1; ++own_finished_) out_of_order_ >>= 1;
  out_of_order_ >>= 1;
  show(own().finished, own_finished_);
}

void MappedGroup::say(Slot& slot, const Plan& plan) {
  std::uint64_t& said = said_[&slot - own().slot];
  if (said == plan.signature) return;
  said = plan.signature;
  std::strncpy(slot.call, plan.words.c_str(), sizeof slot.call - 1);
  slot.call[sizeof slot.call - 1] = 0;
}

// This rank has abandoned its calls. A rank accesses other ranks' memory only within its calls, so `closed` is true from now
// on.
void MappedGroup::poison(const std::string& why) noexcept {
  show(own().closed, 1);
  // If a member gave up first, all members already see its reason; this rank's error would only repeat it.
  if (std::ranges::any_of(boards_, [](const Board* board) { return board && look(board->poisoned); })) return;
  Board& board = own();
  const std::size_t length = std::min(why.size(), sizeof board.why - 1);
  std::memcpy(board.why, why.data(), length);
  board.why[length] = 0;
  show(board.poisoned, 1);
}

// Compares this rank's newest call with those of the members that are leaving or have left. If two ranks leave at once, at
// least one of them sees that the other leaves. The other's board stays allocated until this rank writes its farewell, in
// the destructor. On a pair, the receiver has waited for each message of the sender, so no calls are left to compare.
void MappedGroup::leave() {
  show(member(own(), rank()).gone, leaving);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (int r = 0; r < size(); ++r) {
    Board* board = announced_ || r == rank() ? nullptr : board_of(r);
    if (board && look(member(*board, r).gone) && !look(board->closed)) compare_newest(r);
  }
}

// Compares the newest call that both ranks have finished, unless one of them has used its slot again.
void MappedGroup::compare_newest(int other) {
  const Board& theirs = *board_of(other);
  const std::uint64_t made = look(theirs.finished), both = std::min(made, own_finished_);
  if (both == 0 || std::max(made, own_finished_) - both >= slots) return;
  const std::uint64_t ours = own().slot[both % slots].history, history = look(theirs.slot[both % slots].history);
  if (ours != 0 && history != 0 && history != abandoned && ours != history) throw_calls_differ(other, both);
}

// Call `sequence` differs. The boards also show up to seven earlier calls, and the error names the first that differed.
void MappedGroup::throw_calls_differ(int other, std::uint64_t sequence) {
  const auto slot_in = [](const Board& board, std::uint64_t number) -> const Slot& { return board.slot[number % slots]; };
  const Board& theirs = *board_of(other);
  for (int back = 1; back < slots && sequence > 1; ++back, --sequence)
    if (slot_in(own(), sequence - 1).history == slot_in(theirs, sequence - 1).history) break;
  chorale::throw_calls_differ(sequence, {world_rank(rank()), slot_in(own(), sequence).call},
                              {world_rank(other), slot_in(theirs, sequence).call});
}

bool MappedGroup::is_at(int rank, std::uint64_t sequence, std::uint64_t tag) {
  const Board* board = board_of(rank);
  if (!board || look(board->closed) || look(member(own(), rank).gone)) return false;
  return has_reached(look(board->slot[sequence % slots].word), tag) && look(board->finished) < sequence;
}

// A member that has left has finished all its calls, and its board stays allocated until this rank leaves too. The other
// rank of a pair may have left the parent without creating its side of the pair. Then it has made no calls on the pair.
void MappedGroup::throw_if_left(std::uint64_t sequence, const std::string& words) {
  for (int r = 0; r < size(); ++r) {
    if (r == rank() || !(look(member(own(), r).gone) || (left_parent_ && look(*left_parent_)))) continue;
    const Board* board = board_of(r);
    const std::uint64_t made = board ? look(board->finished) : 0;
    if (made < sequence) throw_left(world_rank(r), made, world_rank(rank()), sequence, words);
  }
}

void MappedGroup::throw_if_poisoned() {
  for (int r = 0; r < size(); ++r)
    if (const Board* board = board_of(r); board && look(board->poisoned))
      throw_gave_up(fmt::format("rank {} of the group gave up", r), board->why);
}

}  // namespace chorale::mapped
