// How hierarchical algorithms divide the vector among the ranks of each host. The number of lanes is the maximum number of
// ranks per host. On every host, each lane has one owner. On a host with fewer ranks than lanes, a rank can own several
// consecutive lanes. The owners of a lane exchange the lane's data between hosts, so all ranks of a host share the traffic
// between hosts.
//
//   hosts 0 0 1 1 1 2    lane 0      lane 1      lane 2
//   host 0               rank 0      rank 1      rank 1
//   host 1               rank 2      rank 3      rank 4
//   host 2               rank 5      rank 5      rank 5
#pragma once
#include <vector>

#include <chorale/problem.hpp>

namespace chorale {

class Lanes {
 public:
  explicit Lanes(const Problem& p);

  // Hosts are numbered in ascending order of their lowest rank.
  int hosts() const { return static_cast<int>(ranks_.size()); }
  int count() const { return count_; }  // the number of lanes
  int host() const { return host_; }    // this rank's host; local() is this rank's index on the host
  int local() const { return local_; }
  int host_of(int rank) const { return hosts_[static_cast<std::size_t>(rank)]; }
  const std::vector<int>& ranks(int host) const { return ranks_[static_cast<std::size_t>(host)]; }
  std::vector<int> all_hosts() const;
  std::vector<int> hosts_beyond(int rank) const;  // all hosts except the host of `rank`, or the only host

  // On host `host`, the rank with local index `local` owns the lanes in [`first(host, local)`, `first(host, local + 1)`).
  int first(int host, int local) const { return local * count_ / size_of(host); }
  int owner(int host, int lane) const {
    return ranks(host)[static_cast<std::size_t>(((lane + 1) * size_of(host) - 1) / count_)];
  }

 private:
  int size_of(int host) const { return static_cast<int>(ranks(host).size()); }
  std::vector<int> hosts_;               // indexed by rank
  std::vector<std::vector<int>> ranks_;  // indexed by host
  int count_ = 0, host_ = 0, local_ = 0;
};

}  // namespace chorale
