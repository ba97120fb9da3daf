// A WorkGraph represents a call as a graph of work items and transfers, and computes the time that the graph takes. A work
// item occupies a rank and one core. A transfer occupies the links of two hosts. A work item or a transfer begins when all
// its predecessors have completed.
//
//   rank 0   ├ call ┼ send ┤                    ├ sum ┤
//   link               ╰──▶├── transfer ──┤       ▲
//   rank 1   ├ call ┼ receive posted ┤    ╰─latency┴─▶ …
//
// If a machine has more ranks than cores, several ranks share a core. When a core switches to a different rank, the core
// first spends `switch_seconds`. A rank runs one work item at a time. If several work items are ready, the rank runs the
// item that was added to the graph first. A link carries one transfer at a time in each direction. While the receiver's link
// is busy, the sender's link proceeds to its next transfer.
#pragma once
#include <cstdint>
#include <vector>

namespace chorale::prediction {

// A Site lists the host and the machine of each rank. Each host has its own link, and each machine has its own cores.
// Emulated hosts share a machine.
struct Site {
  std::vector<int> host_of, machine_of;  // indexed by rank
  int cores = 1;                         // number of cores of each machine

  static Site one_host(int ranks, int cores);
  bool crowded() const;  // whether a machine has more ranks than cores
  // Returns the core of each rank. The ranks of a machine are assigned to the machine's cores round-robin. Only cores that
  // have a rank are numbered, consecutively over all machines.
  std::vector<int> core_of() const;
};

// Work that every rank does while a call is in flight. The rank continues the call only between two pieces.
struct WorkBeside {
  std::int64_t pieces = 0;
  double seconds = 0;  // of one piece on one core
};

class WorkGraph {
 public:
  // `burst_seconds`: an idle link passes transfers of up to this total duration without delay, like a token bucket.
  WorkGraph(Site site, double switch_seconds, double burst_seconds = 0)
      : site_(std::move(site)), switch_seconds_(switch_seconds), burst_seconds_(burst_seconds) {}

  int add(int rank, double seconds);                       // adds a work item; returns its number
  int add_transfer(int from, int to, double seconds);      // adds a transfer between the hosts of these ranks
  void after(int earlier, int later, double latency = 0);  // `later` begins `latency` after the end of `earlier`, or later
  // Adds the pieces of `beside` one after the other, after the work item `earlier` of the rank. Call it last, because a rank
  // prefers work that was added before.
  void add(int rank, int earlier, const WorkBeside& beside);
  double seconds() const;  // time until all work has completed

 protected:
  struct Next {
    int work;
    double latency;
  };
  struct Work {
    int rank, to;  // `to` is the rank that receives a transfer, or −1 if this is not a transfer
    double seconds;
    int missing = 0;
    std::vector<Next> next = {};
  };
  std::vector<int> order() const;  // an order in which all work items can run

  Site site_;
  double switch_seconds_, burst_seconds_;
  std::vector<Work> works_;

 private:
  friend class WorkRun;
};

}  // namespace chorale::prediction
