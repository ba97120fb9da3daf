#include "parallel/mesh/mesh.hpp"

#include <algorithm>
#include <bit>
#include <ranges>
#include <utility>

#include "parallel/mesh/live_axis.hpp"
#include "parallel/mesh/placement.hpp"
#include "parallel/mesh/pretended_axis.hpp"
#include "parallel/pipeline/schedule.hpp"
#include "src/base/error.hpp"
#include "src/base/text.hpp"

namespace chorale {
namespace {

// The distance in ranks between neighbors along an axis.
std::int64_t stride_of(const Layout& l, std::size_t row) {
  const AxisTable& axes = *l.axes;
  const std::array<int, most_axes> depths = depths_of(axes, l.order);
  const unsigned grid = (axes[row].grids & dense_grid) ? dense_grid : expert_grid;
  std::int64_t stride = 1;
  for (std::size_t other = 0; other < axes.size(); ++other)
    if ((axes[other].grids & grid) && depths[other] > depths[row]) stride *= l.size(other);
  return stride;
}

// The rows of a set, from the outermost axis to the innermost.
std::vector<std::size_t> inwards(const Layout& l, AxisSet set) {
  std::vector<std::size_t> rows;
  for (std::size_t row = 0; row < l.axes->size(); ++row)
    if (contains(set, row)) rows.push_back(row);
  std::ranges::sort(rows, {}, [depths = depths_of(*l.axes, l.order)](std::size_t row) { return depths[row]; });
  return rows;
}

std::size_t usually_outermost(const AxisTable& axes, AxisSet set) {
  std::size_t outermost = axes.size();
  for (std::size_t row = 0; row < axes.size(); ++row)
    if (contains(set, row) && (outermost == axes.size() || axes[row].depth < axes[outermost].depth)) outermost = row;
  return outermost;
}

// The coordinates on these axes as one index; the innermost axis varies fastest.
std::int64_t number_of(const Layout& l, const Coordinates& place, AxisSet set) {
  std::int64_t number = 0;
  for (const std::size_t row : inwards(l, set)) number = number * l.size(row) + place[row];
  return number;
}

// Sets of axes that have groups: each axis alone.
std::vector<AxisSet> single_axes(const Layout& l) {
  std::vector<AxisSet> sets;
  for (std::size_t row = 0; row < l.axes->size(); ++row)
    if ((*l.axes)[row].grids & l.grids()) sets.push_back(1U << row);
  return sets;
}

// The other sets that have groups: all axes of the width, all axes of the layers, and every set over which gradients may be
// summed.
std::vector<AxisSet> joined_axes(const Layout& l) {
  const AxisTable& axes = *l.axes;
  std::vector<AxisSet> sets;
  const auto add = [&](AxisSet set) {
    if (std::popcount(set) > 1 && !std::count(sets.begin(), sets.end(), set)) sets.push_back(set);
  };
  for (const unsigned grid : {dense_grid, expert_grid}) {
    if (!(grid & l.grids())) continue;
    const AxisSet copies = l.divided(holding_copies(axes, grid));
    for (AxisSet part = copies; part != 0; part = (part - 1) & copies) add(part);
  }
  add(l.divided(dividing(axes, Divides::width)));
  add(l.divided(dividing(axes, Divides::layers)));
  return sets;
}

}  // namespace

Coordinates coordinates_of(const Layout& l, std::int64_t rank) {
  Coordinates place{};
  for (std::size_t row = 0; row < l.axes->size(); ++row)
    require(l.size(row) > 0, "the size of {} in {} is not known", (*l.axes)[row].name, to_string(l));
  for (std::size_t row = 0; row < l.axes->size(); ++row) place[row] = rank / stride_of(l, row) % l.size(row);
  return place;
}

namespace {

// The ranks that differ from `rank` only on a set of axes, in the order of their index on these.
std::vector<int> ranks_along(const Layout& l, const Coordinates& place, std::int64_t rank, AxisSet set) {
  std::vector<int> ranks{static_cast<int>(rank)};
  for (const std::size_t row : inwards(l, set)) {  // the innermost axis varies fastest
    const std::int64_t stride = stride_of(l, row);
    std::vector<int> more;
    for (const int one : ranks)
      for (std::int64_t i = 0; i < l.size(row); ++i) more.push_back(static_cast<int>(one + (i - place[row]) * stride));
    ranks = std::move(more);
  }
  return ranks;
}

}  // namespace

// A group that contains this rank.
struct Mesh::Line {
  std::string name, chosen_as;     // `chosen_as`: the axis whose backend and algorithm the group uses
  AxisSet set;                     // the axes in which the group's ranks differ
  std::int64_t rank, size, group;  // this rank's index in the group; the group's size and index among those of the same set
};

std::vector<RankGroup> groups_of(const Layout& layout) {
  std::vector<RankGroup> groups;
  std::map<std::pair<std::string, std::int64_t>, std::size_t> known;
  for (int rank = 0; rank < layout.ranks(); ++rank)
    for (const Mesh::Line& line : Mesh::lines_of(layout, rank)) {
      if (line.size == 1) continue;
      const auto [found, is_new] = known.try_emplace({line.name, line.group}, groups.size());
      if (is_new) groups.push_back({line.name, line.chosen_as, {}});
      std::vector<int>& ranks = groups[found->second].ranks;
      ranks.resize(static_cast<std::size_t>(line.size));
      ranks[static_cast<std::size_t>(line.rank)] = rank;
    }
  return groups;
}

int rank_of_stage(const Layout& l, std::int64_t stage, bool last_shard, std::int64_t context_rank) {
  const AxisSet layers = dividing(*l.axes, Divides::layers), width = dividing(*l.axes, Divides::width);
  const AxisSet tokens = dividing(*l.axes, Divides::tokens);
  std::int64_t rank = 0;
  for (const std::size_t row : inwards(l, layers | width | tokens) | std::views::reverse)
    if (contains(layers, row))
      rank += std::exchange(stage, stage / l.sizes[row]) % l.sizes[row] * stride_of(l, row);
    else if (contains(tokens, row))
      rank += std::exchange(context_rank, context_rank / l.sizes[row]) % l.sizes[row] * stride_of(l, row);
    else if (last_shard)
      rank += (l.sizes[row] - 1) * stride_of(l, row);
  return static_cast<int>(rank);
}

std::int64_t stage_of(const Layout& l, std::int64_t rank) {
  return number_of(l, coordinates_of(l, rank), dividing(*l.axes, Divides::layers));
}

std::int64_t context_rank_of(const Layout& l, std::int64_t rank) {
  return number_of(l, coordinates_of(l, rank), dividing(*l.axes, Divides::tokens));
}

std::vector<std::int64_t> end_stages(const Layout& l) {
  const PipelineShape pipeline = pipeline_of(l);
  const std::int64_t first = pipeline.place(0).stage, last = pipeline.place(pipeline.parts() - 1).stage;
  return first == last ? std::vector{first} : std::vector{first, last};
}

std::vector<Mesh::Line> Mesh::lines_of(const Layout& l, std::int64_t rank) {
  const AxisTable& axes = *l.axes;
  const Coordinates place = coordinates_of(l, rank);
  std::vector<Line> lines;
  const auto add = [&](AxisSet set) {
    const AxisSet grid = axes_of(axes, grid_of(axes, set));
    lines.push_back({join(names_of(axes, set), "+"), axes[usually_outermost(axes, set)].name, set, number_of(l, place, set),
                     l.along(set), number_of(l, place, grid & ~set)});
  };
  for (const AxisSet set : single_axes(l)) add(set);

  const AxisSet layers = dividing(axes, Divides::layers), others = axes_of(axes, dense_grid) & ~layers;
  const std::vector<std::int64_t> ends = end_stages(l);
  const std::int64_t stage = number_of(l, place, layers), beside = number_of(l, place, others);
  const auto found = std::find(ends.begin(), ends.end(), stage);
  const bool end = ends.size() > 1 && found != ends.end();
  lines.push_back({"ends", names_of(axes, layers).front(), 0, end ? found - ends.begin() : 0, end ? 2 : 1,
                   end ? beside : l.along(others) * stage + beside});
  lines.push_back({"world", "world", axes_of(axes, dense_grid), rank, l.ranks(), 0});
  for (const AxisSet set : joined_axes(l)) add(set);
  return lines;
}

Mesh::Mesh(const Layout& layout, std::int64_t rank)
    : layout_(layout), place_(coordinates_of(layout, rank)), alone_(std::make_unique<PretendedAxis>("alone", *time_)) {}

void Mesh::make(const MakeGroup& make_group) {
  for (const Line& line : lines_of(layout_, number_of(layout_, place_, axes_of(*layout_.axes, dense_grid)))) {
    groups_.push_back(make_group(line));
    sets_.push_back(line.set);
    if (line.name == "ends") ends_ = groups_.back().get();
    if (line.name == "world") world_ = groups_.back().get();
  }
  data_ = &along(dividing(*layout_.axes, Divides::batch));
  tensor_ = &along(dividing(*layout_.axes, Divides::width));
  pipeline_ = &along(dividing(*layout_.axes, Divides::layers));
  context_ = &along(dividing(*layout_.axes, Divides::tokens));
}

Axis& Mesh::along(AxisSet axes) const {
  const auto find = [&](AxisSet set) -> Axis* {
    const auto found = std::find(sets_.begin(), sets_.end(), set);
    return set == 0 || found == sets_.end() ? nullptr : groups_[static_cast<std::size_t>(found - sets_.begin())].get();
  };
  if (Axis* const group = find(axes)) return *group;
  const AxisSet matters = layout_.divided(axes);
  if (Axis* const group = find(matters)) return *group;
  require(matters == 0, "{} has no group along {}", to_string(layout_), join(names_of(*layout_.axes, axes), "+"));
  return *alone_;
}

std::vector<std::int64_t> Mesh::context_ranks_along(std::size_t row) const {
  const std::int64_t stride = stride_of(layout_, row), first = world_->rank() - place_[row] * stride;
  std::vector<std::int64_t> ranks;
  for (std::int64_t peer = 0; peer < layout_.size(row); ++peer)
    ranks.push_back(context_rank_of(layout_, first + peer * stride));
  return ranks;
}

Mesh::Mesh(const Layout& layout) : Mesh(layout, 0) {
  require(layout.ranks() == 1, "{} has {} ranks, but a mesh without a world has one", to_string(layout), layout.ranks());
  make([&](const Line& line) { return std::make_unique<PretendedAxis>(line.name, *time_); });
}

Mesh::Mesh(const Layout& layout, const Worlds& worlds, const ByAxis& algorithms) : Mesh(layout, worlds.rank()) {
  require(worlds.size() == layout.ranks(), "{} has {} ranks, but the world has {}", to_string(layout), layout.ranks(),
          worlds.size());
  require_reach(layout, worlds.backends(), worlds.topology());
  make([&](const Line& line) {
    const Communicator& world = worlds.for_axis(line.chosen_as);
    Communicator group = world.split(static_cast<int>(line.group), static_cast<int>(line.rank));
    const std::string& algorithm = choice_for(algorithms, line.chosen_as);
    if (!algorithm.empty()) group.choose(algorithm);
    return std::make_unique<LiveAxis>(line.name, std::move(group), *time_);
  });
}

Mesh Mesh::pretended(const Layout& layout, int rank, const ByAxis& backends, const ByAxis& algorithms,
                     std::shared_ptr<const Selector> selector, const std::vector<int>& hosts) {
  Mesh mesh(layout, rank);
  const auto hosts_on = [&](const Line& line) -> std::vector<int> {
    if (hosts.empty()) return {};
    if (line.name != "ends") return hosts_among(ranks_along(layout, mesh.place_, rank, line.set), hosts);
    if (line.size == 1) return hosts_among(std::vector{rank}, hosts);
    const auto stages = ranks_along(layout, mesh.place_, rank, dividing(*layout.axes, Divides::layers));
    std::vector<int> ranks;
    for (const std::int64_t stage : end_stages(layout)) ranks.push_back(stages[static_cast<std::size_t>(stage)]);
    return hosts_among(ranks, hosts);
  };
  mesh.make([&](const Line& line) {
    return std::make_unique<PretendedAxis>(line.name, static_cast<int>(line.rank), static_cast<int>(line.size),
                                           hosts_on(line), choice_for(backends, line.chosen_as),
                                           choice_for(algorithms, line.chosen_as), selector, *mesh.time_);
  });
  return mesh;
}

Accounts accounts_of(const Mesh& mesh) {
  Accounts accounts;
  for (const auto& axis : mesh.axes()) accounts[axis->name()] = axis->account();
  return accounts;
}

void clear_accounts(const Mesh& mesh) {
  for (const auto& axis : mesh.axes()) axis->clear_account();
}

}  // namespace chorale
