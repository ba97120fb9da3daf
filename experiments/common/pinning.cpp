#include "experiments/common/pinning.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "experiments/common/each.hpp"
#include "parallel/mesh/placement.hpp"
#include "src/base/host.hpp"
#include "src/base/text.hpp"

namespace chorale {
namespace {

constexpr int columns = 80;

std::string cut(const std::string& text, int most) {
  const std::string start = first_columns(text, most);
  return start == text ? text : first_columns(text, most - 1) + "…";
}

std::string padded(const std::string& text, std::size_t width) { return fmt::format("{:<{}}", text, width); }

// The rank's coordinates, such as " dp1 tp0", along the layout's axes that have several ranks, from the outermost to the
// innermost. If the layout has only one rank, all axes are named.
std::string coordinates(const Layout& layout, int rank) {
  const Coordinates place = coordinates_of(layout, rank);
  std::string words;
  for (const std::string& axis : layout.outwards_in())
    words += fmt::format(" {}{:<{}}", axis, place[layout.axes->row_of(axis)], std::to_string(layout[axis] - 1).size());
  return words;
}

// Returns the axes whose groups have several ranks. The axes of the dense grid come first, followed by the axes that belong
// only to the expert grid.
AxisOrder axes_with_groups(const Layout& layout) {
  AxisOrder axes = layout.outwards_in();
  const AxisSet only_expert = layout.axes->in_grids(layout.grids()) & ~layout.axes->in_grids(dense_grid);
  for (const std::string& axis : layout.axes->names_of(layout.divided(only_expert))) axes.push_back(axis);
  return axes;
}

std::vector<RankGroup> groups_along(const Layout& layout, const std::string& axis) {
  std::vector<RankGroup> groups = groups_of(layout);
  std::erase_if(groups, [&](const RankGroup& group) { return group.name != axis; });
  return groups;
}

std::int64_t crossing(const std::vector<RankGroup>& groups, const Topology& topology) {
  return std::ranges::count_if(groups, [&](const RankGroup& group) { return !topology.together(group.ranks); });
}

// The cells of one host, in rows of `per_row` cells. A cell has a second line if the cores of the rank are known.
std::string host_row(const Pinning& pinning, int host, std::size_t name_width, std::size_t cell_width, std::size_t per_row) {
  const auto lines_of = [&](std::span<const int> ranks) {
    std::string first, second;
    for (const int rank : ranks) {
      const std::string number = fmt::format("{:>{}}", rank, std::to_string(pinning.topology.host_of.size() - 1).size());
      first += " │ " + padded(number + coordinates(pinning.layout, rank), cell_width);
      if (!pinning.places.empty()) second += " │ " + padded(pinning.places[static_cast<std::size_t>(rank)], cell_width);
    }
    return std::pair{trim(first), trim(second)};
  };
  const std::vector<int> ranks = pinning.topology.ranks_on(host);
  std::string rows, name = cut(pinning.topology.names[static_cast<std::size_t>(host)], static_cast<int>(name_width));
  for (std::size_t from = 0; from < ranks.size(); from += per_row) {
    const auto [first, second] = lines_of(std::span(ranks).subspan(from, std::min(per_row, ranks.size() - from)));
    rows += fmt::format(" {} {}\n", padded(std::exchange(name, ""), name_width), first);
    if (!second.empty()) rows += fmt::format(" {} {}\n", padded("", name_width), second);
  }
  return rows;
}

}  // namespace

std::string drawing_of(const Pinning& pinning) {
  const auto& [layout, topology, places] = pinning;
  const auto ranks = topology.host_of.size();
  std::size_t name_width = 0, cell_width = 0;
  for (const std::string& name : topology.names) name_width = std::clamp(name.size(), name_width, std::size_t{16});
  for (std::size_t rank = 0; rank < ranks; ++rank)
    cell_width = std::max({cell_width, coordinates(layout, static_cast<int>(rank)).size() + std::to_string(ranks - 1).size(),
                           places.empty() ? 0 : places[rank].size()});
  const std::size_t per_row = std::max<std::size_t>(1, (columns - name_width - 1) / (cell_width + 3));
  std::string text = fmt::format("{}: {} rank{} on {} host{}", to_string(layout), ranks, ranks == 1 ? "" : "s",
                                 topology.hosts(), topology.hosts() == 1 ? "" : "s");
  const AxisOrder axes = layout.outwards_in();
  text += axes.size() > 1 ? fmt::format("; from the outermost axis: {}\n\n", join(axes, ",")) : "\n\n";
  for (int host = 0; host < topology.hosts(); ++host) text += host_row(pinning, host, name_width, cell_width, per_row);
  if (!axes.empty()) text += "\n";
  for (const std::string& axis : axes_with_groups(layout)) {
    const std::vector<RankGroup> groups = groups_along(layout, axis);
    const auto across = crossing(groups, topology), all = std::ssize(groups);
    std::string line = fmt::format(" {:<4} {:<16}", axis,
                                   across == 0     ? "stays on hosts"
                                   : across == all ? "crosses hosts"
                                                   : fmt::format("{} of {} cross", across, all));
    for (const RankGroup& group : groups) line += "  " + cpu_ranges(group.ranks);
    text += cut(line, columns) + "\n";
  }
  return text;
}

nlohmann::ordered_json json_of(const Pinning& pinning) {
  using Json = nlohmann::ordered_json;
  const auto& [layout, topology, places] = pinning;
  Json ranks = Json::array(), axes = Json::array();
  for (std::size_t rank = 0; rank < topology.host_of.size(); ++rank) {
    const auto host = static_cast<std::size_t>(topology.host_of[rank]);
    const Coordinates at = coordinates_of(layout, static_cast<std::int64_t>(rank));
    Json coordinates = Json::object();
    for (const std::string& axis : layout.outwards_in()) coordinates[axis] = at[layout.axes->row_of(axis)];
    ranks.push_back({{"rank", rank}, {"host", topology.names[host]}, {"host_number", host}, {"coordinates", coordinates}});
    if (!places.empty()) ranks.back()["place"] = places[rank];
  }
  for (const std::string& axis : layout.outwards_in()) {
    const std::vector<RankGroup> groups = groups_along(layout, axis);
    axes.push_back({{"axis", axis}, {"groups", each(groups, &RankGroup::ranks)}, {"crossing", crossing(groups, topology)}});
  }
  return {{"layout", to_string(layout)}, {"order", layout.outwards_in()}, {"ranks", ranks}, {"axes", axes}};
}

}  // namespace chorale
