// The slots of a launch are the places for ranks. If a rank dies, its slot is in quarantine for a while, because the reason
// can be the host: a bad core, full memory, a neighbor. Each further death doubles the time.
//
//   --ranks 4                 four slots on this host
//   --hosts n0:2,n1:2         two slots on each of two hosts
//   --hosts FILE              one host per line: "n0 slots=2", "n0:2" or "n0"; # begins a comment
//
// All functions take the time as an argument, so a test needs no clock.
#pragma once
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "src/base/launcher.hpp"

namespace chorale::launch {

// Returns the hosts and their numbers of slots. Throws a usage error if the text, or the file that it names, is invalid.
std::vector<std::pair<std::string, int>> read_hosts(const std::string& text);

class Slots {
 public:
  Slots(std::vector<std::pair<std::string, int>> hosts, double quarantine_seconds);

  std::size_t size() const { return slots_.size(); }
  std::size_t live(double now) const;
  std::vector<std::string> live_hosts(double now) const;  // hosts with a live slot
  // Hosts with a slot that is not in quarantine. hold_back() names those among them that are not ready: their slots are not
  // live.
  std::vector<std::string> returned_hosts(double now) const;
  void hold_back(std::vector<std::string> hosts) { held_back_ = std::move(hosts); }
  double next_return(double now) const;  // when the next slot leaves quarantine; infinite if none is in quarantine

  // Assigns the ranks of a run to live slots, host after host. `spread`: every live host gets a rank first, if there are
  // enough.
  void assign(int ranks, double now, bool spread = false);
  RankHosts hosts_of_ranks() const;     // the hosts of the assigned ranks
  std::string host_of(int rank) const;  // "" if the rank has no slot
  void lose(int rank, double now);      // this rank's slot goes into quarantine
  // All slots of the host. `lost_at`: when it was lost, if that is known only now.
  void lose_host(const std::string& host, double now, double lost_at);
  void lose_host(const std::string& host, double now) { lose_host(host, now, now); }
  bool was_lost(const std::string& host) const;  // whether all its slots have been in quarantine

 private:
  struct Slot {
    std::string host;
    double free_at = 0;
    int losses = 0;
  };
  void lose(Slot& slot, double now, double lost_at) const;
  bool is_live(const Slot& slot, double now) const;

  std::vector<Slot> slots_;
  std::vector<std::size_t> of_rank_;
  std::vector<std::string> held_back_;
  double quarantine_seconds_;
};

}  // namespace chorale::launch
