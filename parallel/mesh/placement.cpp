#include "parallel/mesh/placement.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "collectives/backends/backends.hpp"
#include "src/base/error.hpp"
#include "src/base/host.hpp"
#include "src/base/text.hpp"

namespace chorale {
namespace {

// Returns a group that crosses hosts although its backend connects only ranks of one host. Returns nullopt if there is no
// such group.
std::optional<RankGroup> out_of_reach(const Layout& layout, const ByAxis& backends, const Topology& topology) {
  for (const RankGroup& group : groups_of(layout)) {
    const std::string& backend = choice_for(backends, group.chosen_as);
    if (backend != "auto" && backend_named(backend).one_host && !topology.together(group.ranks)) return group;
  }
  return {};
}

// Returns a topology with the same number of ranks on each host, in which ranks are numbered host by host (the default of
// mpirun).
Topology host_by_host(Topology topology) {
  std::sort(topology.host_of.begin(), topology.host_of.end());
  return topology;
}

// Returns the nearest layout in which the backends can connect all groups; "" if there is none. `axis` gets fewer ranks. The
// axis whose size is inferred gets more ranks, unless `axis` belongs only to the expert grid.
std::string smaller(Layout layout, const std::string& axis, const ByAxis& backends, const Topology& topology) {
  const AxisTable& axes = *layout.axes;
  const auto rest = std::find_if(axes.begin(), axes.end(), [](const AxisRow& row) { return row.takes_rest; });
  const std::int64_t whole = layout[axis], replicas = layout[rest->name];
  const AxisRow& row = axes[axes.row_of(axis)];
  if (axis == rest->name || row.follows()) return "";
  for (std::int64_t size = whole - 1; size >= 1; --size) {
    if (whole % size != 0) continue;
    layout[axis] = size;
    if (row.grids & dense_grid) layout[rest->name] = replicas * (whole / size);
    if (layout.shards() == 1) layout.sequence = false;
    if (!out_of_reach(layout, backends, topology)) return to_string(layout);
  }
  return "";
}

// Returns an order of the layout's axes in which the backends can connect all groups; "" if there is none.
std::string other_order(Layout layout, const ByAxis& backends, const Topology& topology) {
  for (const AxisOrder& order : orders_of(layout)) {
    layout.order = order;
    if (!out_of_reach(layout, backends, topology)) return join(order, ",");
  }
  return "";
}

std::string advice(const Layout& layout, const RankGroup& group, const ByAxis& backends, const Topology& topology) {
  const Topology ordered = host_by_host(topology);
  const bool renumbered = ordered.host_of != topology.host_of;
  std::vector<std::string> ways;
  if (renumbered && !out_of_reach(layout, backends, ordered))
    ways.emplace_back("start the ranks host by host (mpirun --map-by slot)");
  if (const std::string order = other_order(layout, backends, topology); !order.empty())
    ways.push_back("take --order " + order);
  const std::string by_slot = renumbered ? " with mpirun --map-by slot" : "";
  if (const std::string order = other_order(layout, backends, ordered); ways.empty() && !order.empty())
    ways.push_back("take --order " + order + by_slot);
  if (const std::string word = smaller(layout, group.chosen_as, backends, ordered); ways.empty() && !word.empty())
    ways.push_back("take --layout " + word + by_slot);
  const std::string wide = best_backend(false, [](const Backend& row) { return !row.one_host && joins_here(row); });
  ways.push_back(fmt::format("use --backend {}={}", group.chosen_as, wide));
  return either(ways);
}

}  // namespace

const std::string& choice_for(const ByAxis& choices, const std::string& axis) {
  static const std::string nothing;
  const auto named = choices.find(axis), other = choices.find("");
  return named != choices.end() ? named->second : other != choices.end() ? other->second : nothing;
}

std::string to_string(const ByAxis& choices) {
  std::string words;
  for (const auto& [axis, choice] : choices)
    words += (words.empty() ? "" : ",") + (axis.empty() ? choice : axis + "=" + choice);
  return words;
}

bool stays_on_hosts(const Layout& layout, const std::string& axis, const Topology& topology) {
  return std::ranges::all_of(
      groups_of(layout), [&](const RankGroup& group) { return group.chosen_as != axis || topology.together(group.ranks); });
}

ByAxis chosen_backends(ByAxis backends, const Layout& layout, const Topology& topology, const std::string& nearest,
                       const std::string& widest) {
  const std::vector<RankGroup> groups = groups_of(layout);
  const auto has_groups = [&](const std::string& axis) {  // without ep, edp has no groups, even if its size is not 1
    return std::ranges::count(groups, axis, &RankGroup::chosen_as) > 0;
  };
  if (nearest != widest)
    for (const AxisRow& axis : *layout.axes)
      if (has_groups(axis.name) && choice_for(backends, axis.name) == "auto" && stays_on_hosts(layout, axis.name, topology))
        backends[axis.name] = nearest;
  for (auto& [axis, backend] : backends)
    if (backend == "auto") backend = widest;
  return backends;
}

bool in_reach(const Layout& layout, const ByAxis& backends, const Topology& topology) {
  return topology.hosts() <= 1 || !out_of_reach(layout, backends, topology);
}

void require_reach(const Layout& layout, const ByAxis& backends, const Topology& topology) {
  if (topology.hosts() <= 1) return;
  const std::optional<RankGroup> group = out_of_reach(layout, backends, topology);
  if (!group) return;
  throw Error(Exit::usage,
              fmt::format("{} connects the ranks of one host, and {} crosses hosts", choice_for(backends, group->chosen_as),
                          group->name),
              fmt::format("{} has ranks {} in one group; hosts have {}", to_string(layout), cpu_ranges(group->ranks),
                          topology.text()),
              advice(layout, *group, backends, topology));
}

}  // namespace chorale
