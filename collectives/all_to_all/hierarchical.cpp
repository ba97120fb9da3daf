// Hierarchical all-to-all, for small blocks and links that are slow between hosts. All blocks from one host to one rank of a
// different host are sent in one message. An agent, which is a rank of the sending host, first collects these blocks. So a
// host with m ranks sends one message instead of m messages to each rank of the other hosts. Every block is sent between
// hosts only once, which is the minimum for any algorithm. Within a host, ranks send blocks directly. All blocks must have
// the same size, because an agent forwards blocks of other ranks and does not know their sizes.
//
//   hosts 0 0 1 1    rank 0 collects the blocks of ranks 0 and 1 for rank 2, and sends them to rank 2
//                    rank 1 collects the blocks of ranks 0 and 1 for rank 3, and sends them to rank 3
#include "collectives/schedule/lanes.hpp"
#include "collectives/schedule/phases.hpp"

namespace chorale::all_to_all {
namespace {

// Returns the rank of `host` that collects the host's blocks for `receiver`, a rank of a different host.
int agent(const Lanes& lanes, int host, int receiver) {
  const auto& there = lanes.ranks(lanes.host_of(receiver));
  const auto place = std::ranges::find(there, receiver) - there.begin() + lanes.host_of(receiver);
  return lanes.ranks(host)[static_cast<std::size_t>(place) % lanes.ranks(host).size()];
}

void send_directly(Schedule& s, const std::vector<int>& ranks, int local, const Home& given, const Home& taken) {
  const int size = static_cast<int>(ranks.size());
  const auto peer = [&](int ahead) { return ranks[static_cast<std::size_t>(modulo(local + ahead, size))]; };
  s.round();
  for (int k = 1; k < size; ++k) s.send(peer(k), given(peer(k)));
  for (int k = 1; k < size; ++k) s.recv(peer(-k), taken(peer(-k)));
  keep_own_block(s, given);
}

}  // namespace

Schedule hierarchical(const Problem& p) {
  Schedule s(p);
  const Lanes lanes(p);
  const Home given = outgoing(s), taken = in_taken(p);
  const std::int64_t count = p.blocks.count(0);
  const std::vector<int>& here = lanes.ranks(lanes.host());
  send_directly(s, here, lanes.local(), given, taken);

  std::vector<std::pair<int, Range>> collected;  // a receiver, and this host's blocks for the receiver
  s.round();
  for (int receiver = 0; receiver < p.size; ++receiver) {
    if (lanes.host_of(receiver) == lanes.host()) continue;
    const int collector = agent(lanes, lanes.host(), receiver);
    if (collector != p.rank) {
      s.send(collector, given(receiver));
      continue;
    }
    if (here.size() == 1) {
      collected.emplace_back(receiver, given(receiver));
      continue;
    }
    Range next = s.scratch(count * std::ssize(here));
    collected.emplace_back(receiver, next);
    next.count = count;
    for (const int sender : here) {
      if (sender == p.rank)
        s.copy(given(receiver), next);
      else
        s.recv(sender, next);
      next.first += count;
    }
  }
  s.round();
  for (const auto& [receiver, blocks] : collected) s.send(receiver, blocks);
  for (int host = 0; host < lanes.hosts(); ++host) {
    if (host == lanes.host()) continue;
    const std::vector<int>& senders = lanes.ranks(host);
    const std::int64_t total = count * std::ssize(senders);
    // Whether the senders' blocks are adjacent in the output.
    const bool adjoin = senders.back() - senders.front() + 1 == std::ssize(senders);
    Range next = adjoin ? output(taken(senders[0]).first, total) : s.scratch(total);
    s.recv(agent(lanes, host, p.rank), next);
    next.count = count;
    for (const int sender : senders) {
      s.copy(next, taken(sender));  // adds no step if the block is already in place
      next.first += count;
    }
  }
  return s;
}

}  // namespace chorale::all_to_all
