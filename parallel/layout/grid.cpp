#include "parallel/layout/grid.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <ranges>
#include <utility>

#include "parallel/pipeline/schedule.hpp"
#include "src/base/error.hpp"
#include "src/base/text.hpp"

namespace chorale {
namespace {

// The difference between the rank numbers of neighbors along an axis.
std::int64_t stride_of(const Layout& l, std::size_t row) {
  const AxisTable& axes = *l.axes;
  const std::array<int, most_axes> depths = axes.depths(l.order);
  const unsigned grid = (axes[row].grids & dense_grid) ? dense_grid : expert_grid;
  std::int64_t stride = 1;
  for (std::size_t other = 0; other < axes.size(); ++other)
    if ((axes[other].grids & grid) && depths[other] > depths[row]) stride *= l.size(other);
  return stride;
}

// Returns the table rows of the axes in a set, from the outermost axis to the innermost.
std::vector<std::size_t> inwards(const Layout& l, AxisSet set) {
  std::vector<std::size_t> rows;
  for (std::size_t row = 0; row < l.axes->size(); ++row)
    if (contains(set, row)) rows.push_back(row);
  std::ranges::sort(rows, {}, [depths = l.axes->depths(l.order)](std::size_t row) { return depths[row]; });
  return rows;
}

std::size_t usually_outermost(const AxisTable& axes, AxisSet set) {
  std::size_t outermost = axes.size();
  for (std::size_t row = 0; row < axes.size(); ++row)
    if (contains(set, row) && (outermost == axes.size() || axes[row].depth < axes[outermost].depth)) outermost = row;
  return outermost;
}

// Converts the coordinates on these axes to one index; the innermost axis varies fastest.
std::int64_t number_of(const Layout& l, const Coordinates& place, AxisSet set) {
  std::int64_t number = 0;
  for (const std::size_t row : inwards(l, set)) number = number * l.size(row) + place[row];
  return number;
}

// Returns each axis that has groups, as a set of one axis.
std::vector<AxisSet> single_axes(const Layout& l) {
  std::vector<AxisSet> sets;
  for (std::size_t row = 0; row < l.axes->size(); ++row)
    if ((*l.axes)[row].grids & l.grids()) sets.push_back(1U << row);
  return sets;
}

// Returns the sets of several axes that have groups. These sets are all axes that divide the width, all axes that divide the
// layers, and every set over which gradients can be summed.
std::vector<AxisSet> joined_axes(const Layout& l) {
  const AxisTable& axes = *l.axes;
  std::vector<AxisSet> sets;
  const auto append = [&](AxisSet set) {
    if (std::popcount(set) > 1 && !std::count(sets.begin(), sets.end(), set)) sets.push_back(set);
  };
  for (const unsigned grid : {dense_grid, expert_grid}) {
    if (!(grid & l.grids())) continue;
    const AxisSet copies = l.divided(axes.holding_copies(grid));
    for (AxisSet part = copies; part != 0; part = (part - 1) & copies) append(part);
  }
  append(l.divided(axes.dividing(Divides::width)));
  append(l.divided(axes.dividing(Divides::layers)));
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

// The ranks that differ from `rank` only on these axes, in the order of their index on these axes.
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

std::vector<RankGroup> groups_of(const Layout& layout) {
  std::vector<RankGroup> groups;
  std::map<std::pair<std::string, std::int64_t>, std::size_t> known;
  for (int rank = 0; rank < layout.ranks(); ++rank)
    for (const GroupOfRank& line : groups_of_rank(layout, rank)) {
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
  const AxisSet layers = l.axes->dividing(Divides::layers), width = l.axes->dividing(Divides::width);
  const AxisSet tokens = l.axes->dividing(Divides::tokens);
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
  return number_of(l, coordinates_of(l, rank), l.axes->dividing(Divides::layers));
}

std::int64_t context_rank_of(const Layout& l, std::int64_t rank) {
  return number_of(l, coordinates_of(l, rank), l.axes->dividing(Divides::tokens));
}

std::vector<std::int64_t> end_stages(const Layout& l) {
  const PipelineShape pipeline = pipeline_of(l);
  const std::int64_t first = pipeline.place(0).stage, last = pipeline.place(pipeline.parts() - 1).stage;
  return first == last ? std::vector{first} : std::vector{first, last};
}

std::vector<GroupOfRank> groups_of_rank(const Layout& l, std::int64_t rank) {
  const AxisTable& axes = *l.axes;
  const Coordinates place = coordinates_of(l, rank);
  std::vector<GroupOfRank> lines;
  const auto append = [&](AxisSet set) {
    const AxisSet grid = axes.in_grids(axes.grid_of(set));
    lines.push_back({join(axes.names_of(set), "+"), axes[usually_outermost(axes, set)].name, set, number_of(l, place, set),
                     l.along(set), number_of(l, place, grid & ~set)});
  };
  for (const AxisSet set : single_axes(l)) append(set);

  const AxisSet layers = axes.dividing(Divides::layers), others = axes.in_grids(dense_grid) & ~layers;
  const std::vector<std::int64_t> ends = end_stages(l);
  const std::int64_t stage = number_of(l, place, layers), beside = number_of(l, place, others);
  const auto found = std::find(ends.begin(), ends.end(), stage);
  const bool end = ends.size() > 1 && found != ends.end();
  lines.push_back({"ends", axes.names_of(layers).front(), 0, end ? found - ends.begin() : 0, end ? 2 : 1,
                   end ? beside : l.along(others) * stage + beside});
  lines.push_back({"world", "world", axes.in_grids(dense_grid), rank, l.ranks(), 0});
  for (const AxisSet set : joined_axes(l)) append(set);
  return lines;
}

std::vector<int> ranks_of(const GroupOfRank& group, const Layout& layout, std::int64_t rank) {
  const bool of_ends = group.set == 0 && group.size > 1;
  const std::vector<std::int64_t> ends = of_ends ? end_stages(layout) : std::vector<std::int64_t>{};
  const AxisSet set = of_ends ? layout.axes->dividing(Divides::layers) : group.set;
  const std::vector<int> ranks = ranks_along(layout, coordinates_of(layout, rank), rank, set);
  if (!of_ends) return ranks;
  std::vector<int> of_stages;
  for (const std::int64_t stage : ends) of_stages.push_back(ranks[static_cast<std::size_t>(stage)]);
  return of_stages;
}

std::vector<std::int64_t> context_ranks_along(const Layout& layout, std::int64_t rank, std::size_t row) {
  std::vector<std::int64_t> ranks;
  for (const int peer : ranks_along(layout, coordinates_of(layout, rank), rank, 1U << row))
    ranks.push_back(context_rank_of(layout, peer));
  return ranks;
}

}  // namespace chorale
