// Hierarchical all-reduce, for links that are fast within a host and slow between hosts. It runs a direct reduce-scatter
// within each host, then circulant all-reduces between hosts, then a direct all-gather within each host. So between hosts
// each rank sends only the lanes of the vector that it owns (lanes.hpp).
#include "collectives/lanes.hpp"
#include "collectives/phases.hpp"

namespace chorale::all_reduce {

Schedule hierarchical(const Problem& p) {
  Schedule s(p);
  const Lanes lanes(p);
  const Range whole = output(0, p.blocks.total());
  const Blocks vector = Blocks::even(whole.count, lanes.count());
  const int host = lanes.host(), local = lanes.local(), here = static_cast<int>(lanes.ranks(host).size());
  std::vector<std::int64_t> owned;
  for (int i = 0; i < here; ++i)
    owned.push_back(vector.first(lanes.first(host, i + 1)) - vector.first(lanes.first(host, i)));
  const Blocks parts(owned);
  const Range mine = output(parts.first(local), parts.count(local));

  Schedule within({Collective::reduce_scatter, local, here, 0, parts, p.in_place});
  direct_reduce_scatter(within, output(0, mine.count));
  s.append(within, lanes.ranks(host), input(0, whole.count), mine);

  for (int lane = lanes.first(host, local); lane < lanes.first(host, local + 1); ++lane) {
    Schedule across({Collective::all_reduce, host, lanes.hosts(), 0, Blocks::even(vector.count(lane), lanes.hosts()), true});
    circulant_reduce_scatter(across, in_output(across.problem()));
    circulant_all_gather(across, in_output(across.problem()));
    const Range part = output(vector.first(lane), vector.count(lane));
    s.append(across, lanes.owners(lane), part, part);
  }

  Schedule back({Collective::all_gather, local, here, 0, parts, true});
  direct_all_gather(back, input(0, mine.count), in_output(back.problem()));
  s.append(back, lanes.ranks(host), mine, whole);
  return s;
}

}  // namespace chorale::all_reduce
