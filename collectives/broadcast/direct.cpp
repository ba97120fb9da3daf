// Direct broadcast: the root sends the complete vector to each of the p − 1 other ranks, in one round. On mapped memory, all
// ranks copy at the same time. The root writes one of the vector's p blocks to each receiver, and the receiver reads the
// other p − 1 blocks. So every rank copies (p−1)/p of the vector.
#include "collectives/schedule/phases.hpp"

namespace chorale::broadcast {

Schedule direct(const Problem& p) {
  Schedule s(p);
  const auto before = [&](int r) { return Range{Place::output, 0, p.blocks.first(r)}; };
  const auto block = [&](int r) { return Range{Place::output, p.blocks.first(r), p.blocks.count(r)}; };
  const auto behind = [&](int r) {
    const std::int64_t end = p.blocks.first(r) + p.blocks.count(r);
    return Range{Place::output, end, p.blocks.total() - end};
  };
  s.round();
  if (p.rank != p.root) {
    for (const Range& range : {before(p.rank), behind(p.rank), block(p.rank)}) s.recv(p.root, range);
    return s;
  }
  const auto own = [](const Range& range) { return input(range.first, range.count); };
  const std::vector<int> others = others_from(p.root, p.size);
  for (const int peer : others) {
    s.send(peer, own(before(peer)));
    s.send(peer, own(behind(peer)));
  }
  for (const int peer : others) s.put(peer, own(block(peer)));
  s.copy(input(0, p.blocks.total()), output(0, p.blocks.total()));
  return s;
}

}  // namespace chorale::broadcast
