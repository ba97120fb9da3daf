// Control messages are the messages that ranks exchange in addition to the data of their collectives. A control message can
// describe a slow call to a peer, announce that a rank gave up, or announce that a rank leaves a group (a farewell). If no
// call fails and no call is slow, farewells are the only control messages. (The backend nccl also sends control messages for
// each call and for each new communicator.)
//
//   rank 0   group 7 ─┐  "in your group 4: which call is your 12th?"    ┌─ group 4   rank 1
//                     └──────────────── message ───────────────────────▶┘
//
// A control message can arrive late. In the picture, rank 0 sends a request because rank 1 is slow. When the request
// arrives, rank 1 might already have finished that call, left the group and joined a different group. Five rules make late
// messages harmless:
//
//   1. Each rank numbers the groups that it joins: 1, 2, 3, … A rank never reuses a number. A group can have different
//      numbers on different ranks.
//   2. Members exchange their numbers for a group while the group is created (Transport::offer). A control message contains
//      the recipient's number for the group, so it reaches either the intended group or no group.
//   3. If a rank has left a group, the rank drops all messages to this group except `farewell` and `closed`, which say that
//      the sender left too. The history in a farewell must still be compared with the history of this rank's calls. If a
//      rank is still creating a group, the rank keeps the group's messages.
//   4. Point-to-point messages use pairs: groups of two ranks, one for each direction. A pair is identified by the number of
//      its parent group and by the direction. A pair ends no later than its parent group.
//   5. A farewell is the last control message that a rank sends to a group, and arrives after all earlier control messages.
//
// Group ids (Membership::id) are reused, so messages are never addressed by group id.
#pragma once
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "src/base/mpi.hpp"

namespace chorale {

// The destination of a control message: a group, given by the recipient's number for the group.
struct Address {
  std::uint64_t number = 0;         // the group's number; for a pair, the parent group's number
  std::int32_t from = -1, to = -1;  // for a pair, the direction: sender and receiver of data, as world ranks; otherwise −1
  bool operator==(const Address&) const = default;
};

struct ControlMessage {
  // ask: describes the sender's call, which the recipient compares with its own call. poison: the sender gave up. closed:
  // the sender receives no more data messages. news: data from the group's first member. farewell: the sender left.
  enum class Kind : std::int32_t { ask, poison, closed, news, farewell };
  Kind kind;
  std::int32_t sender;  // world rank
  Address to;
  std::uint64_t sequence, history;
  // The description of a call; in `poison`, the rank that gave up and the reason; in `news`, 472 bytes of data.
  char text[472];
};

// A ControlChannel transfers control messages between the ranks of a world. Every message arrives, and messages from one
// rank to another arrive in the order in which they were sent.
class ControlChannel {
 public:
  virtual ~ControlChannel() = default;
  virtual int rank() const = 0;
  virtual void send(int to, const ControlMessage& message) noexcept = 0;
  virtual bool receive(ControlMessage& message) = 0;  // false: no message has arrived
  virtual void nothing_more_comes() {}  // called when this rank has received all messages that other ranks sent to it
};

std::unique_ptr<ControlChannel> control_channel_over_mpi(MPI_Comm world);  // collective

// A ControlEndpoint sends and receives the control messages of one rank. The ControlEndpoint holds the numbers of the rank's
// groups, and the unread messages for these groups.
class ControlEndpoint {
 public:
  using Compare = std::function<void(const ControlMessage& farewell)>;  // throws if the sender made mismatched calls

  explicit ControlEndpoint(std::unique_ptr<ControlChannel> channel) : channel_(std::move(channel)) {}
  explicit ControlEndpoint(MPI_Comm world) : ControlEndpoint(control_channel_over_mpi(world)) {}
  ~ControlEndpoint();
  int rank() const { return channel_->rank(); }

  std::uint64_t next_number();              // assigns a number to a group that this rank is about to join
  void end(std::uint64_t number) noexcept;  // after an error, ends this rank's group with this number and the group's pairs
  // Called when this rank has left the group with this number. The world ranks `staying` have not left the group yet.
  // `compare` checks the farewells of these ranks when the farewells arrive.
  void end(std::uint64_t number, std::set<int> staying, Compare compare);
  bool has_left(std::uint64_t number, int rank) const { return left_.contains({number, rank}); }
  bool all_left();  // whether all members have left all groups that this rank has left; throws for mismatched calls

  void send(int to, const ControlMessage& message) noexcept { channel_->send(to, message); }
  void listen();  // receives all messages that have arrived
  std::list<ControlMessage>& inbox() { return inbox_; }

 private:
  void take_in(const ControlMessage& message);
  void close(std::uint64_t number) noexcept;

  struct Ended {
    std::set<int> staying;
    Compare compare;
  };
  std::unique_ptr<ControlChannel> channel_;
  std::uint64_t newest_ = 0;                      // the newest number of a group
  std::set<std::uint64_t> open_;                  // numbers of groups that have not ended
  std::set<std::pair<std::uint64_t, int>> left_;  // (number of an open group, world rank that left it)
  std::map<std::uint64_t, Ended> ended_;          // keyed by number: groups that this rank, but not every member, has left
  bool is_complete_ = true;                       // whether no group of this rank has ended by an error
  std::list<ControlMessage> inbox_;
};

}  // namespace chorale
