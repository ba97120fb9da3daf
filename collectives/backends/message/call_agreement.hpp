// Detects mismatched calls of a group's ranks, and detects that a rank gave up or left the group. Every rank then gets an
// error instead of a hang. Ranks detect such a problem by control messages (control.hpp):
//
//   rank 1 waits long in its call 7, an all_gather        ask ──→  rank 0, whose call 7 was a broadcast, throws and gives up
//   rank 1 learns why                                       ←── poison "rank 0 called broadcast …, rank 1 all_gather …"
//   rank 1 gives up too; both stop receiving           closed ──→  ←── closed
//
// A rank that leaves a group sends a farewell to all other members. The farewell contains the number of calls that the rank
// made, and the history of these calls. A history is a hash; two ranks have the same history if they made the same calls. If
// a rank waits in a call that the departed rank never made, the waiting rank throws immediately. Ranks also compare the
// histories, because the last calls of two ranks can differ even if neither rank waits for the other. An example is two
// broadcasts from different roots.
//
// A CallAgreement belongs to a group. The CallAgreement holds the newest calls that this rank made in the group
// (history.hpp), and the information from received control messages. A CallWatch belongs to an operation and watches the
// operation's current call.
//
// The following invariants hold. tests/collectives/backends/call_agreement_test.cpp checks them for every order of steps and
// control messages.
//
//   - Calls are compared by group, sequence and history. A control message contains all three values. So if the calls of two
//     ranks match, no control message makes a rank report a mismatch, even if the message arrives late.
//   - If the calls of two ranks do not match and one rank waits for the other, both ranks throw after both have read their
//     control messages.
//   - Suppose that two ranks have left after the same number of calls, and that their newest calls differ. Then at least one
//     of the two ranks detects the difference, when it leaves or later. This is the rank that receives the other rank's
//     farewell last.
//   - If a member left before a call, no other rank waits forever in this call.
//   - A rank sends `closed` once, after its last receive on this group has ended. After sending `closed`, the rank reads no
//     data messages of this group. So a peer that has received `closed` may reuse the buffers of its unfinished sends to
//     this rank.
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "collectives/backends/message/history.hpp"
#include "src/base/hash.hpp"

namespace chorale {

// Point-to-point messages from rank `from` to rank `to` use a pair, a group of these two ranks. The pair's id is the parent
// group's id with this bit set. The two directions between two ranks are two pairs with the same id.
constexpr std::uint32_t pair_bit = 1u << 11;
Membership pair_of(const Membership& parent, int from, int to);

class CallAgreement {
 public:
  // group.offers holds the result of ControlEndpoint::next_number() on each member.
  CallAgreement(ControlEndpoint& control, const Membership& group);
  ~CallAgreement();
  const Membership& group() const { return group_; }
  int world_rank(int member) const { return group_.members[static_cast<std::size_t>(member)]; }

  // Returns a hash of a call's history and of this group's incarnation. The incarnation is a hash of the members, and of the
  // number that each member has assigned to the group. No other group with the same id has the same members and numbers. The
  // result is equal on all ranks.
  std::uint64_t mark(std::uint64_t history) const { return hash_with(incarnation_, history); }

  void enter(const Plan& plan) { calls_.enter(plan); }
  void note(const Run& run, std::uint64_t signature) { calls_.note(run, signature); }
  void examine();                                            // throws if a peer gave up or made a mismatched call
  void refuse_after_farewell(std::uint64_t sequence) const;  // throws if a member left before that call
  void ask(const std::vector<int>& peers, std::uint64_t sequence);
  // Whether this peer has sent an `ask` message about this call or about a later call. In this case, the calls of the peer
  // and of this rank match, because otherwise read() would have thrown.
  bool was_asked(int peer, std::uint64_t sequence) const;

  // Tells all members that this rank gives up. Sends nothing if this rank already knows that another member gave up, because
  // that member has told all members.
  void poison(const std::string& why) noexcept;
  void close() noexcept;  // tells all members that this rank receives nothing more on this group
  bool has_closed(int world_rank) {
    hear_out();
    return closed_.contains(world_rank) || left_.contains(world_rank);
  }
  // Tells all members that this rank makes no more calls. Throws if a farewell shows that another rank made mismatched
  // calls.
  void leave();

  // tell() and heard() distribute up to 472 bytes from the group's first member to all other members. The first member calls
  // tell() once. On the other members, heard() returns true once the bytes have arrived.
  void tell(std::span<const char> news) noexcept;
  bool heard(std::span<char> news);

  // other_call and wrong_length always throw. `sequence` and `words` describe this rank's call, and `theirs` describes the
  // peer's call.
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
  std::map<int, std::uint64_t> asked_;  // keyed by world rank: the newest call in the rank's `ask` messages
  std::string gave_up_;                 // the peer that gave up, and the reason; all later waits throw this message
  std::set<int> closed_;                // world ranks that have sent `closed`
  std::map<int, ControlMessage> left_;  // keyed by world rank: received farewells
  bool has_poisoned_ = false, has_closed_ = false, has_left_ = false;
};

class CallWatch {
 public:
  CallWatch(CallAgreement& agreement, std::uint64_t signature, std::vector<int> peers)
      : agreement_(&agreement), signature_(signature), peers_(std::move(peers)) {}
  void start(const Run& run) {
    sequence_ = run.sequence;
    examined_ = 0;
    checked_ = run.history != 0;
    has_asked_ = false;
    agreement_->note(run, signature_);
  }
  void examine();
  void ask();  // asks all peers once; called when a peer is known to have made a mismatched call

 private:
  CallAgreement* agreement_;
  std::uint64_t signature_;
  std::vector<int> peers_;
  std::uint64_t sequence_ = 0, examined_ = 0;
  bool checked_ = false, has_asked_ = false;
};

}  // namespace chorale
