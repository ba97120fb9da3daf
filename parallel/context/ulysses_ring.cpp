// Context parallelism on two levels (USP: Fang & Zhao 2024; LoongTrain: Gu et al. 2024). The u ranks of a host exchange
// heads for tokens, as in ulysses.cpp. Each rank then has some of the heads for all tokens of the host. As in ring.cpp, the
// keys and values of these heads circulate in a ring of r ranks, one rank per host.
//
//                 host 0              host 1
//   tokens        rank 0   rank 1     rank 2   rank 3      u = 2, r = 2
//                   └ heads ┘           └ heads ┘          all_to_all within a host
//   keys            0 ◀─────────────────▶ 2                a ring of the first heads
//                            1 ◀─────────────────▶ 3       a ring of the last heads
//
// Only the rings cross hosts, and ranks compute while ring messages are in flight. Let h be the width of all query heads,
// and let h_kv be the width of all key heads. If c = u·r ranks divide b samples of s tokens evenly, a rank sends these
// numbers of elements per layer and step:
//
//   within a host     2·(2h + 2h_kv)·b·(s/c)·(u−1)/u     as ulysses in a host
//   across hosts      6·h_kv/u·b·s·(r−1)/r               as a ring of r ranks with h_kv/u: keys twice, gradients once
//
// Plain ulysses sends 2·(2h + 2h_kv)·b·(s/c)·(r−1)/r across hosts. So this scheme sends less across hosts if r < ⅔(1 +
// h/h_kv). The number of key heads must be a multiple of u; it need not be a multiple of c. A rank keeps as many bytes for
// the backward pass as with ulysses. Partial results are merged as in ring.cpp, so exact numerics refuses this scheme.
//
// A host has the tokens of all its ranks. With a zigzag partition, adjacent ranks have adjacent chunks, so hosts have equal
// load.
#include <algorithm>

#include "parallel/context/context.hpp"
#include "src/base/error.hpp"

namespace chorale {

std::vector<std::int64_t> ranks_by_host(const std::vector<int>& hosts, std::int64_t ranks) {
  if (hosts.empty()) return {ranks};
  std::vector<std::int64_t> counts(static_cast<std::size_t>(std::ranges::max(hosts) + 1));
  for (const int host : hosts) ++counts[static_cast<std::size_t>(host)];
  return counts;
}

AxisParts inner_parts(Axis& axis, std::int64_t inner) {
  const std::vector<std::int64_t> counts = ranks_by_host(axis.hosts(), axis.size());
  const bool even = std::ranges::adjacent_find(counts, std::ranges::not_equal_to{}) == counts.end();
  if (even && (inner == 0 || inner == counts.front())) {
    std::vector<std::int64_t> by_host(axis.hosts().begin(), axis.hosts().end());
    return by_host.empty() ? AxisParts(axis) : AxisParts(axis, by_host);
  }
  require(inner > 0, "hosts with unequal numbers of the {} context ranks have no ring", axis.size());
  std::vector<std::int64_t> by_count;
  for (std::int64_t rank = 0; rank < axis.size(); ++rank) by_count.push_back(rank / inner);
  return {axis, by_count};
}

std::unique_ptr<AttentionScheme> ulysses_ring_context(const AxisParts& hosts, const TokenCut& cut) {
  if (hosts.is_whole()) return ulysses_context(hosts, cut);
  if (hosts.size() == 1) return ring_context(hosts.axis(), cut);
  return ulysses_around(ring_context(hosts.across(), cut.joined(hosts.part_of())), hosts, cut);
}

}  // namespace chorale
