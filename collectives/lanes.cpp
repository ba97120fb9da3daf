#include "collectives/lanes.hpp"

#include <algorithm>

#include "src/base/error.hpp"

namespace chorale {

Lanes::Lanes(const Problem& p) {
  require(p.hosts.empty() || std::ssize(p.hosts) == p.size, "a problem of {} ranks has hosts for {}", p.size,
          p.hosts.size());
  std::vector<int> all(static_cast<std::size_t>(p.size));
  for (int rank = 0; rank < p.size; ++rank) all[static_cast<std::size_t>(rank)] = rank;
  const std::vector<int> hosts = hosts_among(all, p.hosts);
  for (const int rank : all) {
    const int host = hosts.empty() ? 0 : hosts[static_cast<std::size_t>(rank)];
    if (host == this->hosts()) ranks_.emplace_back();
    std::vector<int>& theirs = ranks_[static_cast<std::size_t>(host)];
    if (rank == p.rank) host_ = host, local_ = static_cast<int>(theirs.size());
    theirs.push_back(rank);
    count_ = std::max(count_, size_of(host));
  }
}

std::vector<int> Lanes::owners(int lane) const {
  std::vector<int> ranks;
  for (int host = 0; host < hosts(); ++host) ranks.push_back(owner(host, lane));
  return ranks;
}

}  // namespace chorale
