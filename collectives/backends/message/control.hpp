// Control messages are the messages that ranks exchange in addition to the data of their collectives. A control message asks
// a peer about a slow call, announces that a rank gave up, or says farewell when a rank leaves a group. If no call fails or
// takes long, farewells are the only control messages. (The backend nccl also sends one for each call, and one for each new
// communicator.)
//
//   rank 0   group 7 ─┐  "in your group 4: which call is your 12th?"    ┌─ group 4   rank 1
//                     └──────────────── message ───────────────────────▶┘
//
// A control message can arrive late. In the picture, rank 0 asked because rank 1 was slow. When the question arrives, rank 1
// may have finished that call, left the group and joined another. Five rules keep such a message harmless:
//
//   1. Each rank gives every group that it joins a number: 1, 2, 3, … It never uses a number again. The same group may have
//      different numbers on two ranks.
//   2. Members learn each other's numbers while the group is created (Transport::offer). A message carries the recipient's
//      number of the group, so it reaches exactly the group that it was written for, or no group.
//   3. A message for a group that this rank has left is dropped, unless it says that its sender left too. For example, the
//      calls that a farewell names must still be compared with this rank's calls. A message for a group that this rank is
//      still creating is kept.
//   4. Two ranks of a group that exchange data in one direction form a pair. Pairs are not numbered: the parent's
//      number and the direction identify a pair. A pair ends no later than its parent.
//   5. A farewell is the last message that its sender writes to that group, and it arrives after all earlier messages.
//
// Group ids (Membership::id) are reused, so they never decide where a message goes.
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

// The group that a control message is for, by the recipient's number of that group.
struct Address {
  std::uint64_t number = 0;         // the group's number; for a pair, the parent group's number
  std::int32_t from = -1, to = -1;  // for a pair, its direction in world ranks; otherwise −1
  bool operator==(const Address&) const = default;
};

struct ControlMessage {
  // ask: names the sender's call, for the recipient to compare with its own. poison: the sender gave up. closed: the sender
  // receives no more data messages. news: data from the group's first member. farewell: the sender left.
  enum class Kind : std::int32_t { ask, poison, closed, news, farewell };
  Kind kind;
  std::int32_t sender;  // world rank
  Address to;
  std::uint64_t sequence, history;
  char text[472];  // the call in words; for poison, which rank gave up, and why; for news, 472 bytes of data
};

// Carries control messages between the ranks of a world. Every message arrives, and messages from one rank to another arrive
// in the order in which they were sent.
class ControlChannel {
 public:
  virtual ~ControlChannel() = default;
  virtual int rank() const = 0;
  virtual void send(int to, const ControlMessage& message) noexcept = 0;
  virtual bool receive(ControlMessage& message) = 0;  // false: none has arrived
  virtual void nothing_more_comes() {}  // called when this rank has received all messages that others sent to it
};

std::unique_ptr<ControlChannel> control_channel_over_mpi(MPI_Comm world);  // collective

// Sends and receives one rank's control messages. Holds the numbers of the rank's groups, and the messages for groups that
// have not ended.
class ControlEndpoint {
 public:
  using Compare = std::function<void(const ControlMessage& farewell)>;  // throws if the sender made different calls

  explicit ControlEndpoint(std::unique_ptr<ControlChannel> channel) : channel_(std::move(channel)) {}
  explicit ControlEndpoint(MPI_Comm world) : ControlEndpoint(control_channel_over_mpi(world)) {}
  ~ControlEndpoint();
  int rank() const { return channel_->rank(); }

  std::uint64_t next_number();              // the number for a group that this rank is about to join
  void end(std::uint64_t number) noexcept;  // this rank has ended the group with this number, and its pairs, after an error
  // This rank has left the group with this number. The world ranks `staying` have not left it yet: `compare` checks their
  // farewells when they arrive.
  void end(std::uint64_t number, std::set<int> staying, Compare compare);
  bool has_left(std::uint64_t number, int rank) const { return left_.contains({number, rank}); }
  bool all_left();  // whether all members of all groups that this rank left have left too; throws if calls differed

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
  std::uint64_t newest_ = 0;                      // the newest number
  std::set<std::uint64_t> open_;                  // numbers of groups that have not ended
  std::set<std::pair<std::uint64_t, int>> left_;  // (number of an open group, world rank that has left the group)
  std::map<std::uint64_t, Ended> ended_;          // by number: groups that this rank has left, but not all members
  bool is_complete_ = true;                       // no group of this rank has ended with an error
  std::list<ControlMessage> inbox_;
};

}  // namespace chorale
