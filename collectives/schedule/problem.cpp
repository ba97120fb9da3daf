#include <chorale/problem.hpp>

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "src/base/error.hpp"

namespace chorale {

Blocks Blocks::even(std::int64_t count, int size) {
  require(count >= 0 && size > 0, "{} elements cannot be cut into {} blocks", count, size);
  std::vector<std::int64_t> counts;
  for (int b = 0; b < size; ++b) counts.push_back(count / size + (b < count % size ? 1 : 0));
  return Blocks(counts);
}

Blocks::Blocks(const std::vector<std::int64_t>& counts) {
  for (const std::int64_t count : counts) {
    require(count >= 0, "a block cannot have {} elements", count);
    starts_.push_back(starts_.back() + count);
  }
}

std::vector<int> hosts_among(std::span<const int> ranks, const std::vector<int>& hosts) {
  std::vector<int> seen, theirs;
  for (const int rank : ranks) {
    const int host = hosts.empty() ? 0 : hosts.at(static_cast<std::size_t>(rank));
    const auto found = std::find(seen.begin(), seen.end(), host);
    theirs.push_back(static_cast<int>(found - seen.begin()));
    if (found == seen.end()) seen.push_back(host);
  }
  return seen.size() > 1 ? theirs : std::vector<int>{};
}

std::vector<int> hosts_among(const std::vector<int>& hosts) {
  std::vector<int> all(hosts.size());
  std::iota(all.begin(), all.end(), 0);
  return hosts_among(all, hosts);
}

int number_of_hosts(const std::vector<int>& hosts) {
  return std::max(1, static_cast<int>(std::set<int>(hosts.begin(), hosts.end()).size()));
}

Problem Problem::even(Collective what, std::int64_t count, int size, int root, bool in_place, std::vector<int> hosts) {
  Problem problem{
      what, 0, size, root, Blocks::even(what == Collective::barrier ? 1 : count, size), in_place, {}, std::move(hosts)};
  if (what == Collective::all_to_all)
    problem.taken = problem.blocks = Blocks(std::vector<std::int64_t>(static_cast<std::size_t>(size), count / size));
  return problem;
}

std::vector<Problem> Problem::exchange(const std::vector<std::vector<std::int64_t>>& counts, bool in_place,
                                       const std::vector<int>& hosts) {
  const int size = static_cast<int>(counts.size());
  std::vector<Problem> problems;
  for (int rank = 0; rank < size; ++rank) {
    const auto index = static_cast<std::size_t>(rank);
    require(counts[index].size() == counts.size(), "rank {} has counts for {} ranks, but there are {} ranks", rank,
            counts[index].size(), size);
    std::vector<std::int64_t> taken;
    for (const auto& row : counts) taken.push_back(row.at(index));
    problems.push_back({Collective::all_to_all, rank, size, 0, Blocks(counts[index]), in_place, Blocks(taken), hosts});
  }
  return problems;
}

Problem Problem::at(int other_rank) const {
  Problem other = *this;
  other.rank = other_rank;
  return other;
}

std::int64_t Problem::input_count() const {
  if (takes_block()) return blocks.count(rank);
  const bool only_root = what == Collective::broadcast || what == Collective::scatter;
  return only_root && rank != root ? 0 : blocks.total();
}

std::int64_t Problem::output_count() const {
  if (what == Collective::all_to_all) return taken.total();
  if (gives_block()) return blocks.count(rank);
  const bool only_root = what == Collective::reduce || what == Collective::gather;
  return only_root && rank != root ? 0 : blocks.total();
}

}  // namespace chorale
