// Post sends messages between the ranks of one host through shared memory. The sender writes a ring entry (a Notice), which
// describes the message, to a ring buffer. The receiver copies the data from the sender's buffer. An arena is memory of one
// rank that all ranks of the host map.
//
//   rank 0's arena                                       rank 1
//   outbox to rank 1: a ring of 64 entries         ──▶   reads all entries in order, even if the receive is not posted yet
//   the data                                       ──▶   copies the data once the receive is posted …
//   the message's `taken`                          ◀──   … then writes the entry's `run` to `taken`: send completed
//
// A message of up to 448 bytes is stored in its ring entry. The send of such a message has completed once the ring entry is
// in the ring.
//
// Invariants:
//   - Every 64-bit word has one writer. The receiver writes `taken` and `seen`. `seen` is the number of ring entries that
//     the receiver has read. The sender writes all other words.
//   - The sender writes the number of a ring entry after all other fields of the entry. The receiver reads the number first.
//   - Whenever a receiver makes progress on any call, the receiver reads all ring entries that have arrived. So a full ring
//     always becomes empty again, and the order of receives cannot cause a deadlock.
//   - After the receiver has written `taken`, the receiver accesses neither the data nor `taken`.
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
  std::uint64_t number = 0;                            // counts the ring entries of this ring from 1
  std::uint64_t group = 0, sequence = 0, history = 0;  // identify the message's call (CallAgreement::mark)
  std::int64_t bytes = 0;                              // length of the message
  mapped::Location data = 0, taken = 0;                // locations; unused if the ring entry holds the data
  std::uint64_t run = 0;                               // the value that the receiver writes to `taken`
  std::byte carried[carried_bytes];
};

// A receive. The object must stay at its address until the receive has completed or was canceled.
struct Incoming {
  int from = 0;  // the sender's rank on the host
  std::uint64_t group = 0, sequence = 0;
  void* place = nullptr;
  std::int64_t bytes = 0;
  bool over = false;
  std::uint64_t history = 0;  // set on arrival: the history of the message
  std::int64_t came = 0;      // set on arrival: the message's length; data are copied only if this length equals `bytes`
};

// A Post sends and receives the messages of one rank within its host.
class Post {
 public:
  Post(const mpi::Runtime& runtime, const Topology& topology);  // collective

  bool is_near(int world_rank) const { return local(world_rank) >= 0; }
  // Returns the rank's index on this host, or −1 if the rank is on a different host.
  int local(int world_rank) const { return locals_[static_cast<std::size_t>(world_rank)]; }
  mapped::Reach& reach() const { return *reach_; }

  std::uint64_t send(int to, const Notice& notice);  // assigns the ring entry's number and returns it
  // Whether the ring entry with this number has been written to the ring.
  bool has_sent(int to, std::uint64_t number) const { return peers_[static_cast<std::size_t>(to)].sent >= number; }
  void receive(Incoming& incoming);  // completes immediately if the message has arrived
  void cancel(const Incoming& incoming) noexcept;
  void progress();

 private:
  struct Outbox {
    alignas(64) std::uint64_t seen = 0;  // number of ring entries that this rank has read from the other rank's outbox
    Notice ring[ring_notices];
  };
  struct Peer {
    Outbox* mine = nullptr;             // this rank's outbox to the peer
    Outbox* theirs = nullptr;           // the peer's outbox to this rank
    std::uint64_t sent = 0, taken = 0;  // numbers of ring entries written to `mine`, and read from `theirs`
    std::deque<Notice> waiting = {};    // ring entries that wait for a free slot in the ring
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
  std::vector<int> locals_;  // indexed by world rank: index on this host, or −1
  Buffer outboxes_;
  std::vector<Peer> peers_;          // indexed by rank on the host
  std::vector<Incoming*> receives_;  // in the order in which they were posted
  std::vector<Kept> kept_;           // ring entries without a posted receive, in order of arrival
};

}  // namespace chorale::near
