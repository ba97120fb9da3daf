// Messages between the ranks of one host, through shared memory. The sender writes a notice of the message, and the receiver
// copies the data from the sender's buffer. An arena is memory of one rank that all ranks of the host map.
//
//   rank 0's arena                                       rank 1
//   outbox to rank 1: a ring of 64 notices         ──▶   takes all notices in order, even if the receive is not posted yet
//   the data                                       ──▶   copies the data once the receive is posted …
//   the message's `taken` word                     ◀──   … then writes the notice's `run` there: the send is over
//
// A message of up to 448 bytes is stored in its notice, and its send is over once the notice is in the ring.
//
// Invariants:
//   - Each word has one writer. The receiver writes `taken` and `seen`, its count of notices taken; the sender writes all
//     other words.
//   - The sender writes a notice's number after all its other fields; the receiver reads the number first.
//   - Whenever a receiver makes progress on any call, it takes all notices that have arrived. So a full ring always empties,
//     and the order of receives cannot cause a deadlock.
//   - After `taken` is written, the receiver touches neither the data nor the word.
#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "collectives/backends/mapped/shared_reach.hpp"
#include "src/base/topology.hpp"

namespace chorale::near {

constexpr int ring_notices = 64;
constexpr std::int64_t carried_bytes = 448;

struct alignas(64) Notice {
  std::uint64_t number = 0;                            // counts the notices of this ring from 1
  std::uint64_t group = 0, sequence = 0, history = 0;  // the message's call: see CallAgreement::mark
  std::int64_t bytes = 0;                              // length of the message
  mapped::Location data = 0, taken = 0;                // locations; unused if the notice holds the message
  std::uint64_t run = 0;                               // the value that the receiver writes to `taken`
  std::byte carried[carried_bytes];
};

// A receive. The object must stay at its address until the receive is over or canceled.
struct Incoming {
  int from = 0;  // the sender's rank on the host
  std::uint64_t group = 0, sequence = 0;
  void* place = nullptr;
  std::int64_t bytes = 0;
  bool over = false;
  std::uint64_t history = 0;  // set on arrival: the history of the message
  std::int64_t came = 0;      // set on arrival: the message's length; its data are copied only if this equals `bytes`
};

// One rank's side of the messages on its host.
class Post {
 public:
  Post(const mpi::Runtime& runtime, const Topology& topology);  // collective

  bool is_near(int world_rank) const { return local(world_rank) >= 0; }
  // The rank's index on this host; −1 if it is on another host.
  int local(int world_rank) const { return locals_[static_cast<std::size_t>(world_rank)]; }
  mapped::Reach& reach() const { return *reach_; }

  std::uint64_t send(int to, const Notice& notice);  // assigns the notice's number and returns it
  // Whether the notice with this number is in the ring.
  bool has_sent(int to, std::uint64_t number) const { return peers_[static_cast<std::size_t>(to)].sent >= number; }
  void receive(Incoming& incoming);  // completes at once if the message has arrived
  void cancel(const Incoming& incoming) noexcept;
  void progress();

 private:
  struct Outbox {
    alignas(64) std::uint64_t seen = 0;  // notices of the other rank's outbox that this rank has taken
    Notice ring[ring_notices];
  };
  struct Peer {
    Outbox* mine = nullptr;             // this rank's outbox to the peer
    Outbox* theirs = nullptr;           // the peer's outbox to this rank
    std::uint64_t sent = 0, taken = 0;  // numbers of notices written to `mine`, and taken from `theirs`
    std::deque<Notice> waiting = {};    // notices that wait for room in the ring
  };
  struct Kept {
    int from;
    Notice notice;
  };
  void take(int from, const Notice& notice, Incoming& incoming);
  bool has_room(const Peer& peer) const;
  void write(Peer& peer, const Notice& notice);

  mpi::Runtime host_;
  std::unique_ptr<mapped::Reach> reach_;
  std::vector<int> locals_;  // by world rank: its index on this host, or −1
  Buffer outboxes_;
  std::vector<Peer> peers_;          // by rank on the host
  std::vector<Incoming*> receives_;  // in the order in which they were posted
  std::vector<Kept> kept_;           // notices whose receive is not posted yet, in order of arrival
};

}  // namespace chorale::near
