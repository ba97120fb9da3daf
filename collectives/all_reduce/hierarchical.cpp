// Hierarchical all-reduce, for links that are fast within a node and slow between nodes. It runs a direct reduce-scatter
// within each node, then circulant all-reduces between nodes, then a direct all-gather within each node. So between nodes
// each rank sends only the part of the vector that it sums in its node.
//
// The vector is cut into as many lanes as the fullest node has ranks. On each node, each lane has one owner, the rank that
// sums this lane. The owners of a lane run the all-reduce of that lane between nodes. On a node with fewer ranks, some ranks
// own several lanes.
//
//   7 ranks, 3 per node    lane 0      lane 1      lane 2
//   node 0                 rank 0      rank 1      rank 2         the ranks of a column run one all-reduce between nodes
//   node 1                 rank 3      rank 4      rank 5
//   node 2                 rank 6      rank 6      rank 6
#include "collectives/phases.hpp"

namespace chorale::all_reduce {
namespace {

// How ranks and lanes are divided: `count` nodes, `lanes` lanes, and which rank of a node owns a lane.
struct Nodes {
  explicit Nodes(const Problem& p)
      : size(p.size),
        lanes(p.ranks_per_node > 0 ? std::min(p.ranks_per_node, p.size) : p.size),
        count((p.size + lanes - 1) / lanes) {}

  int ranks(int node) const { return std::min(lanes, size - node * lanes); }
  int first_lane(int node, int local) const { return local * lanes / ranks(node); }
  int owner(int node, int lane) const { return node * lanes + ((lane + 1) * ranks(node) - 1) / lanes; }

  int size, lanes, count;
};

}  // namespace

Schedule hierarchical(const Problem& p) {
  Schedule s(p);
  const Nodes nodes(p);
  const Range whole = output(0, p.blocks.total());
  const Blocks lanes = Blocks::even(whole.count, nodes.lanes);
  const int node = p.rank / nodes.lanes, local = p.rank % nodes.lanes, here = nodes.ranks(node);
  std::vector<int> neighbours;
  std::vector<std::int64_t> owned;
  for (int i = 0; i < here; ++i) {
    neighbours.push_back(node * nodes.lanes + i);
    owned.push_back(lanes.first(nodes.first_lane(node, i + 1)) - lanes.first(nodes.first_lane(node, i)));
  }
  const Blocks parts(owned);
  const Range mine = output(parts.first(local), parts.count(local));

  Schedule within({Collective::reduce_scatter, local, here, 0, parts, p.in_place});
  direct_reduce_scatter(within, output(0, mine.count));
  s.append(within, neighbours, input(0, whole.count), mine);

  for (int lane = nodes.first_lane(node, local); lane < nodes.first_lane(node, local + 1); ++lane) {
    std::vector<int> others;
    for (int other = 0; other < nodes.count; ++other) others.push_back(nodes.owner(other, lane));
    Schedule across({Collective::all_reduce, node, nodes.count, 0, Blocks::even(lanes.count(lane), nodes.count), true});
    circulant_reduce_scatter(across, in_output(across.problem()));
    circulant_all_gather(across, in_output(across.problem()));
    const Range part = output(lanes.first(lane), lanes.count(lane));
    s.append(across, others, part, part);
  }

  Schedule back({Collective::all_gather, local, here, 0, parts, true});
  direct_all_gather(back, input(0, mine.count), in_output(back.problem()));
  s.append(back, neighbours, mine, whole);
  return s;
}

}  // namespace chorale::all_reduce
