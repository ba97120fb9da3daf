#include "collectives/schedule/lanes.hpp"

#include <algorithm>
#include <numeric>

#include "src/base/error.hpp"

namespace chorale {

Lanes::Lanes(const Problem& p) {
  require(p.hosts.empty() || std::ssize(p.hosts) == p.size, "a problem of {} ranks has hosts for {}", p.size,
          p.hosts.size());
  hosts_ = hosts_among(p.hosts);
  hosts_.resize(static_cast<std::size_t>(p.size));  // hosts_among() returns an empty vector if there is one host
  for (int rank = 0; rank < p.size; ++rank) {
    const int host = host_of(rank);
    if (host == hosts()) ranks_.emplace_back();
    std::vector<int>& theirs = ranks_[static_cast<std::size_t>(host)];
    if (rank == p.rank) {
      host_ = host;
      local_ = static_cast<int>(theirs.size());
    }
    theirs.push_back(rank);
    count_ = std::max(count_, size_of(host));
  }
}

std::vector<int> Lanes::all_hosts() const {
  std::vector<int> all(ranks_.size());
  std::iota(all.begin(), all.end(), 0);
  return all;
}

std::vector<int> Lanes::hosts_beyond(int rank) const {
  std::vector<int> others = all_hosts();
  if (hosts() > 1) std::erase(others, host_of(rank));
  return others;
}

}  // namespace chorale
