// Detects that ranks make different calls, or that a rank gave up or left. Every rank then gets an error instead of a hang.
// Ranks detect the problem by control messages (control.hpp):
//
//   rank 1 waits long in its call 7, an all_gather        ask ──→  rank 0, whose call 7 was a broadcast, throws and gives up
//   rank 1 learns why                                       ←── poison "rank 0 called broadcast …, rank 1 all_gather …"
//   rank 1 gives up too; both stop receiving           closed ──→  ←── closed
//
// A rank that leaves a group sends a farewell to each other member. The farewell carries the number of calls that the rank
// made, and their history. A history is a hash that is equal on ranks whose calls are the same. A rank that waits in a call
// that the departed rank never made throws at once. The histories are compared too, because the last calls of two ranks may
// differ although neither rank waits for the other. An example is two broadcasts from different roots.
//
// A CallAgreement belongs to a group. It holds the newest calls that this rank made in the group (history.hpp), and what
// this rank has learned from control messages. A CallWatch belongs to an operation and watches its current call.
//
// Invariants; tests/collectives/backends/call_agreement_test.cpp checks them for every order of steps and control messages:
//
//   - Calls are compared by their group, sequence and history. A control message names all three exactly. So if the calls of
//     two ranks agree, no control message makes a rank report a difference, however late it arrives.
//   - If two ranks' calls differ and one rank waits for the other, both ranks throw once each has read its control messages.
//   - Suppose that two ranks have left after equally many calls and their newest calls differ. Then at least the rank that
//     receives the other's farewell last detects the difference, when it leaves or later.
//   - No rank waits forever in a call that a member never made because it left.
//   - A rank sends `closed` once, after its last receive on this group has ended. From then on it reads no message from this
//     group, so a peer that has received `closed` may reuse the buffers of its unfinished sends.
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "collectives/backends/message/history.hpp"

namespace chorale {

// Point-to-point messages from `from` to `to` use a pair: a group of these two ranks, whose id is the parent's id with this
// bit set. The two directions between two ranks are two pairs with the same id.
constexpr std::uint32_t pair_bit = 1u << 11;
Membership pair_of(const Membership& parent, int from, int to);

class CallAgreement {
 public:
  CallAgreement(ControlEndpoint& control,
                const Membership& group);  // group.offers holds each member's ControlEndpoint::next_number()
  ~CallAgreement();
  const Membership& group() const { return group_; }
  int world_rank(int member) const { return group_.members[static_cast<std::size_t>(member)]; }

  // A hash of a call's history and of this group's incarnation. The incarnation is a hash of the members and their group
  // numbers. No other group with the same id has the same members and numbers. The result is equal on all ranks.
  std::uint64_t mark(std::uint64_t history) const { return (history ^ incarnation_) * 0x9e3779b97f4a7c15u; }

  void enter(const Plan& plan) { calls_.enter(plan); }
  void note(const Run& run, std::uint64_t signature) { calls_.note(run, signature); }
  void examine();  // throws if a control message says that a peer gave up or made a different call
  void refuse_after_farewell(std::uint64_t sequence) const;  // throws if a member left before that call
  void ask(const std::vector<int>& peers, std::uint64_t sequence);
  // Whether a control message of this peer asked about this call or a later one. If so, the peer's call equals ours, because
  // otherwise read() would have thrown.
  bool was_asked(int peer, std::uint64_t sequence) const;

  // Tells all members that this rank gives up. Sends nothing if another member gave up first and told this rank, because
  // that member told all others too.
  void poison(const std::string& why) noexcept;
  void close() noexcept;  // tells all members that this rank receives nothing more on this group
  bool has_closed(int world_rank) { return hear_out(), closed_.contains(world_rank) || left_.contains(world_rank); }
  // Tells all members that this rank makes no more calls. Throws if a farewell shows that another rank's calls differed.
  void leave();

  // Distributes up to 472 bytes from the group's first member to all others. The first member calls tell() once. On the
  // others, heard() is true once the bytes have arrived.
  void tell(std::span<const char> news) noexcept;
  bool heard(std::span<char> news);

  // Both functions always throw. `sequence` and `words` describe this rank's call, and `theirs` describes the peer's call.
  [[noreturn]] void other_call(int peer, std::uint64_t sequence, const std::string& theirs) const {
    calls_.differs(peer, sequence, theirs);
  }
  [[noreturn]] void wrong_length(int peer, const std::string& words, std::int64_t came, std::int64_t expected) const;

 private:
  bool is_pair() const { return group_.id & pair_bit; }
  Address address_at(int member) const;
  void hear_out() noexcept;
  void read(const ControlMessage& message);
  ControlMessage message(ControlMessage::Kind kind) const { return {kind, control_.rank(), {}, 0, 0, ""}; }
  ControlMessage message_about(ControlMessage::Kind kind, std::uint64_t sequence) const;
  void send_all(ControlMessage message) noexcept;

  ControlEndpoint& control_;
  Membership group_;
  const Address own_;
  const std::uint64_t incarnation_;
  CallHistory calls_;
  std::map<int, std::uint64_t> asked_;  // by world rank: the newest call that the rank asked about
  std::string gave_up_;                 // which peer gave up, and why; every later wait on this group throws this text
  std::set<int> closed_;                // world ranks that have sent `closed`
  std::map<int, ControlMessage> left_;  // by world rank: the farewells that have arrived
  bool has_poisoned_ = false, has_closed_ = false, has_left_ = false;
};

class CallWatch {
 public:
  CallWatch(CallAgreement& agreement, std::uint64_t signature, std::vector<int> peers)
      : agreement_(&agreement), signature_(signature), peers_(std::move(peers)) {}
  void start(const Run& run) {
    sequence_ = run.sequence, examined_ = 0, checked_ = run.history != 0, has_asked_ = false;
    agreement_->note(run, signature_);
  }
  void examine();
  void ask();  // asks all peers once, when this rank knows that one of them made a different call

 private:
  CallAgreement* agreement_;
  std::uint64_t signature_;
  std::vector<int> peers_;
  std::uint64_t sequence_ = 0, examined_ = 0;
  bool checked_ = false, has_asked_ = false;
};

}  // namespace chorale
