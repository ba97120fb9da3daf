// Detects that ranks make different calls, or that one of them gave up or left: a mistake then ends in an error on every
// rank instead of a hang. Without errors the only letters are farewells: a rank sends one to each member when it leaves a
// group.
//
//   rank 1 waits a while in its call 7, an all_gather     ask ──→  rank 0, whose call 7 was a broadcast, throws and gives up
//   rank 1 learns why                                       ←── poison "rank 0 called broadcast …, rank 1 all_gather …"
//   rank 1 gives up too; both stop receiving           closed ──→  ←── closed
//
// A farewell carries the number of its rank's calls and their history. A rank that waits in a later call throws at once. The
// histories are compared too, because ranks may differ in their last calls without waiting for each other: two broadcasts
// from different roots.
//
// A CallBook belongs to a group: its newest calls (history.hpp) and the news from its letters (letters.hpp). A CallWatch
// belongs to an operation and watches its current call.
//
// Invariants; tests/collectives/call_agreement_test.cpp explores them over every order of steps and letters:
//
//   - Calls are compared by group, sequence and history. All three are exact. So ranks whose calls agree are never told that
//     they differ, however late a letter arrives.
//   - If two ranks' calls differ and one of them waits for the other, both end in an error once each has read its letters.
//   - If two ranks have left after equally many calls and their newest calls differ, the one that receives the other's
//     farewell last detects it, when it leaves or later.
//   - No rank waits forever in a call that a member never made because it left.
//   - A rank sends `closed` once, after the last of its receives on this group has ended. From then on it reads no message
//     sent to it, so a sender that has received `closed` may reuse its buffers.
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "collectives/backends/message/history.hpp"

namespace chorale {

// Messages from `from` to `to` use a group of two with the parent's id and this bit. The direction distinguishes the two
// groups of one id.
constexpr std::uint32_t pair_bit = 1u << 11;
Membership pair_of(const Membership& parent, int from, int to);

class CallBook {
 public:
  CallBook(ServiceLine& line, const Membership& group);  // offers: each member's ServiceLine::next_number()
  ~CallBook();
  const Membership& group() const { return group_; }
  int world_rank(int member) const { return group_.members[static_cast<std::size_t>(member)]; }

  // A call's history, mixed with what distinguishes this group from all others that ever had its id. Equal on all ranks.
  std::uint64_t mark(std::uint64_t history) const { return (history ^ incarnation_) * 0x9e3779b97f4a7c15u; }

  void enter(const Plan& plan) { calls_.enter(plan); }
  void note(const Run& run, std::uint64_t signature) { calls_.note(run, signature); }
  void examine();  // throws if a letter says that a peer gave up or made a different call
  void refuse_after_farewell(std::uint64_t sequence) const;  // throws if a member left before that call
  void ask(const std::vector<int>& peers, std::uint64_t sequence);
  bool was_asked(int peer, std::uint64_t sequence) const;  // then the peer's call equals ours: otherwise read() throws

  void poison(const std::string& why) noexcept;  // tells all members, unless one of them told us: it has told the others too
  void close() noexcept;                         // tells all members that this rank receives nothing more on this group
  bool has_closed(int world_rank) { return hear_out(), closed_.contains(world_rank) || left_.contains(world_rank); }
  void leave();  // tells all members that this rank makes no more calls; throws if it learns that the newest differed

  // Up to 472 bytes that the group's first member creates and all need. tell() sends them once; heard() is true when they
  // arrive.
  void tell(std::span<const char> news) noexcept;
  bool heard(std::span<char> news);

  // These errors, also for use by backends; `sequence` and `words` describe our own call.
  [[noreturn]] void other_call(int peer, std::uint64_t sequence, const std::string& theirs) const {
    calls_.differs(peer, sequence, theirs);
  }
  [[noreturn]] void wrong_length(int peer, const std::string& words, std::int64_t came, std::int64_t expected) const;

 private:
  bool is_pair() const { return group_.id & pair_bit; }
  Address address_at(int member) const;
  void hear_out() noexcept;
  void read(const Letter& letter);
  Letter letter(Letter::Kind kind) const { return {kind, line_.rank(), {}, 0, 0, ""}; }
  Letter letter_about(Letter::Kind kind, std::uint64_t sequence) const;
  void send_all(Letter letter) noexcept;

  ServiceLine& line_;
  Membership group_;
  const Address own_;
  const std::uint64_t incarnation_;
  CallHistory calls_;
  std::map<int, std::uint64_t> asked_;  // by world rank: the newest call it asked about
  std::string gave_up_;                 // which peer, and why; every later wait on this group fails
  std::set<int> closed_;                // world ranks
  std::map<int, Letter> left_;          // farewells, by world rank
  bool has_poisoned_ = false, has_closed_ = false, has_left_ = false;
};

class CallWatch {
 public:
  CallWatch(CallBook& book, std::uint64_t signature, std::vector<int> peers)
      : book_(&book), signature_(signature), peers_(std::move(peers)) {}
  void start(const Run& run) {
    sequence_ = run.sequence, examined_ = 0, checked_ = run.history != 0;
    book_->note(run, signature_);
  }
  void examine();

 private:
  CallBook* book_;
  std::uint64_t signature_;
  std::vector<int> peers_;
  std::uint64_t sequence_ = 0, examined_ = 0;
  bool checked_ = false;
};

}  // namespace chorale
