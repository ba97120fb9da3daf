// Messages between the ranks of one host, through shared memory. The sender writes a notice, and the receiver copies the
// data from where the sender has them.
//
//   rank 0's arena                                       rank 1
//   outbox to rank 1: a ring of 64 notices         ──▶   takes all notices in order, also those it has no receive for yet
//   the data                                       ──▶   copies them once it has a receive for them …
//   the message's `taken` word                     ◀──   … and writes the run's number there: now the send is over
//
// A notice carries up to 192 bytes itself; such a send is over when the ring has room for the notice.
//
// Invariants:
//   - Each word has one writer: the receiver writes `taken` and `seen` (its count of notices taken), the sender all others.
//   - A notice's number is written after the rest of it, and read before.
//   - A receiver takes every notice that has arrived whenever it makes progress on any call. So a full ring always empties,
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
constexpr std::int64_t carried_bytes = 192;

struct alignas(64) Notice {
  std::uint64_t number = 0;                            // counts the notices of this ring from 1
  std::uint64_t group = 0, sequence = 0, history = 0;  // of the call: see CallBook::mark
  std::int64_t bytes = 0;
  mapped::Location data = 0, taken = 0;
  std::uint64_t run = 0;  // to be written to `taken`
  std::byte carried[carried_bytes];
};

// A receive. It must stay where it is until it is over or canceled.
struct Incoming {
  int from = 0;  // rank on the host
  std::uint64_t group = 0, sequence = 0;
  void* place = nullptr;
  std::int64_t bytes = 0;
  bool over = false;
  std::uint64_t history = 0;  // of the message that arrived …
  std::int64_t came = 0;      // … and its length; data are copied only if that is `bytes`
};

// One rank's end of the messages on its host.
class Post {
 public:
  Post(const mpi::Runtime& runtime, const Topology& topology);  // collective

  bool is_near(int world_rank) const { return local(world_rank) >= 0; }
  int local(int world_rank) const {
    return locals_[static_cast<std::size_t>(world_rank)];
  }  // rank on this host; −1: on another
  mapped::Reach& reach() const { return *reach_; }

  std::uint64_t send(int to, const Notice& notice);  // returns the notice's number, which is filled in here
  bool has_sent(int to, std::uint64_t number) const { return peers_[static_cast<std::size_t>(to)].sent >= number; }
  void receive(Incoming& incoming);  // over at once if the message is here
  void cancel(const Incoming& incoming) noexcept;
  void progress();

 private:
  struct Outbox {
    alignas(64) std::uint64_t seen = 0;  // notices of the other rank's outbox that this rank has taken
    Notice ring[ring_notices];
  };
  struct Peer {
    Outbox* mine = nullptr;    // to the peer
    Outbox* theirs = nullptr;  // to this rank
    std::uint64_t sent = 0, taken = 0;
    std::deque<Notice> waiting = {};  // for room in the ring
  };
  struct Kept {
    int from;
    Notice notice;
  };
  void take(int from, const Notice& notice, Incoming& incoming);
  void fill(Peer& peer);

  mpi::Runtime host_;
  std::unique_ptr<mapped::Reach> reach_;
  std::vector<int> locals_;  // by world rank
  Buffer outboxes_;
  std::vector<Peer> peers_;          // by rank on the host
  std::vector<Incoming*> receives_;  // in the order in which they were posted
  std::vector<Kept> kept_;           // notices without a receive, in order of arrival
};

}  // namespace chorale::near
