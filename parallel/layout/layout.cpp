// This file infers missing sizes of a layout, lists all layouts that a number of ranks allows, and selects the layouts that
// an error message suggests.
#include "parallel/layout/layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <tuple>

#include "layers/context.hpp"
#include "parallel/layout/layout_rules.hpp"
#include "src/base/error.hpp"
#include "src/base/text.hpp"

namespace chorale {
namespace {

// Infers missing sizes.
Layout with_rest(Layout layout, std::int64_t world) {
  const AxisTable& axes = *layout.axes;
  for (std::size_t row = 0; row < axes.size(); ++row) {
    if (!axes[row].takes_rest || axes[row].follows() || layout.sizes[row] != 0) continue;
    const std::int64_t others = layout.along(axes.in_grids(dense_grid) & ~(1U << row));
    if (others > 0 && world % others == 0) layout.sizes[row] = world / others;
  }
  return layout;
}

constexpr std::int64_t most_ranks = std::numeric_limits<int>::max();  // a rank number is an int

[[noreturn]] void refuse_product(const Layout& layout, AxisSet set) {
  std::vector<std::string> sizes;
  for (const std::string& name : layout.axes->names_of(set))
    if (layout[name] != 1) sizes.push_back(fmt::format("{} {}", name, layout[name]));
  usage_error("the layout has more ranks than there can be", join(sizes, " × "),
              fmt::format("take a layout of at most {} ranks", most_ranks));
}

using Largest = std::map<Divides, std::int64_t>;  // the maximum size of an axis that divides this quantity; without an
                                                  // entry, there is no limit

// Returns every factorization of `world` into axis sizes. The size of the outermost axis varies slowest in the list.
std::vector<Layout> shapes_of(const AxisTable& axes, std::int64_t world, const Largest& largest) {
  std::vector<std::size_t> rows;
  for (std::size_t row = 0; row < axes.size(); ++row)
    if (!axes[row].takes_rest) rows.push_back(row);
  std::sort(rows.begin(), rows.end(), [&](std::size_t a, std::size_t b) { return axes[a].depth < axes[b].depth; });
  Layout plain{.axes = &axes};
  for (std::size_t row = 0; row < axes.size(); ++row) plain.sizes[row] = axes[row].unnamed_size();
  std::vector<Layout> all{plain};
  const std::vector<std::int64_t> sizes = divisors(world);
  AxisSet chosen = 0;
  for (const std::size_t row : rows) {
    const auto limit = largest.find(axes[row].divides);
    std::vector<Layout> longer;
    for (Layout layout : all) {
      const std::int64_t left = world / layout.along(chosen & axes.in_grids(axes[row].grids));
      const std::int64_t most = limit == largest.end() ? left : std::clamp<std::int64_t>(limit->second, 1, left);
      for (const std::int64_t size : sizes) {
        if (size > most) break;
        layout.sizes[row] = size;
        if (with_rest(layout, world).ranks() == world) longer.push_back(layout);
      }
    }
    all = std::move(longer);
    chosen |= 1U << row;
  }
  for (Layout& layout : all) layout = with_rest(layout, world);
  std::erase_if(all, [&](const Layout& layout) { return check_rest(layout, world).has_value(); });
  return all;
}

std::vector<Layout> shapes_of(const LayoutLimits& limits) {
  const ModelShape& shape = limits.shape;
  return shapes_of(*limits.axes, limits.world,
                   {{Divides::tokens, Context::leaves_of(shape.sequence).per_sample()},
                    {Divides::width, shape.groups},
                    {Divides::layers, shape.layers},
                    {Divides::experts, shape.experts.count}});
}

double distance(const Layout& a, const Layout& b) {
  const auto apart = [](std::int64_t x, std::int64_t y) {
    return x > 0 && y > 0 ? std::abs(std::log2(static_cast<double>(x) / static_cast<double>(y))) : 0;
  };
  double sum = 0;
  for (std::size_t row = 0; row < a.axes->size(); ++row) sum += apart(a.sizes[row], b.sizes[row]);
  return sum;
}

// Returns text such as "dp4.tp2, dp2.tp4 or dp2.tp2.pp2".
std::string nearest_of(const Layout& asked, std::vector<Layout> layouts) {
  std::stable_sort(layouts.begin(), layouts.end(),
                   [&](const Layout& a, const Layout& b) { return distance(asked, a) < distance(asked, b); });
  layouts.resize(std::min<std::size_t>(layouts.size(), 3));
  std::vector<std::string> words;
  for (const Layout& layout : layouts) words.push_back(to_string(layout));
  return either(words);
}

// The layouts that fit and are closest to `asked`. These layouts keep the ZeRO stage, sp, order and schedule of `asked`
// where possible.
std::string nearest_fitting(const Layout& asked, const LayoutLimits& limits) {
  std::vector<Layout> fitting;
  for (Layout layout : shapes_of(limits)) {
    layout.zero = asked.zero;
    layout.order = asked.order;
    layout.hpz = asked.hpz && layout.repeats() > 1 && layout.zero == 3;
    layout.sequence = asked.sequence && layout.shards() > 1;
    Layout scheduled = layout;
    if (layout.stages() > 1) {
      scheduled.schedule = asked.schedule;
      scheduled.chunks = asked.chunks;
    }
    if (fits(scheduled, limits))
      fitting.push_back(scheduled);
    else if (fits(layout, limits))
      fitting.push_back(layout);
  }
  return nearest_of(asked, fitting.empty() ? all_layouts(limits) : fitting);
}

// Returns options such as "--micro-batch-size 2", which change the batch or the micro-batch so that this layout fits.
std::vector<std::string> fitting_batches(const Layout& asked, const LayoutLimits& limits) {
  const Layout layout = with_rest(asked, limits.world);
  if (layout.ranks() != limits.world) return {};
  std::vector<std::string> batches, micro_batches, remedies;
  const std::int64_t unit = batch_unit(layout, limits), below = limits.global_batch / unit;
  for (const std::int64_t step : {-1, 1})  // tries several batch sizes: some schedules need a multiple of the number of
                                           // stages
    for (std::int64_t tried = 0; tried < layout.stages(); ++tried) {
      LayoutLimits other = limits;
      other.global_batch = (below + (step > 0) + step * tried) * unit;
      if (other.global_batch <= 0 || !fits(layout, other)) continue;
      batches.push_back(fmt::format("{}", other.global_batch));
      break;
    }
  for (LayoutLimits other = limits; limits.micro_batch > 0 && micro_batches.size() < 3;) {
    if (--other.micro_batch < 1) break;
    if (fits(layout, other)) micro_batches.push_back(fmt::format("{}", other.micro_batch));
  }
  if (!batches.empty()) remedies.push_back("--global-batch-size " + either(batches));
  if (!micro_batches.empty()) remedies.push_back("--micro-batch-size " + either(micro_batches));
  return remedies;
}

}  // namespace

std::vector<std::int64_t> divisors(std::int64_t n) {
  std::vector<std::int64_t> small, large;
  for (std::int64_t d = 1; d * d <= n; ++d) {
    if (n % d != 0) continue;
    small.push_back(d);
    if (d * d < n) large.insert(large.begin(), n / d);
  }
  small.insert(small.end(), large.begin(), large.end());
  return small;
}

std::int64_t Layout::along(AxisSet set) const {
  std::int64_t product = 1;
  for (std::size_t row = 0; row < axes->size(); ++row) {
    if (!contains(set, row)) continue;
    product *= size(row);
    if (product > most_ranks) refuse_product(*this, set);
  }
  return product;
}

// The axes that are only in the dense grid and the axes that are only in the expert grid have the same product of sizes: dp
// · cp = edp · ep.
std::int64_t Layout::size(std::size_t row) const {
  if (!(*axes)[row].follows()) return sizes[row];
  const AxisSet dense = axes->in_grids(dense_grid), expert = axes->in_grids(expert_grid);
  const std::int64_t whole = along(dense & ~expert), others = along(expert & ~dense & ~(1U << row));
  return others > 0 && whole % others == 0 ? whole / others : 0;
}

AxisSet Layout::divided(AxisSet set) const {
  for (std::size_t row = 0; row < axes->size(); ++row)
    if (size(row) == 1) set &= ~(1U << row);
  return set;
}

AxisOrder Layout::outwards_in() const {
  const std::array<int, most_axes> depths = axes->depths(order);
  AxisOrder names = axes->names_of(axes->in_grids(dense_grid));
  std::erase_if(names, [&](const std::string& name) { return (*this)[name] == 1; });
  std::ranges::sort(names, {}, [&](const std::string& name) { return depths[axes->row_of(name)]; });
  return names;
}

bool Layout::has_usual_order() const {
  Layout usual = *this;
  usual.order.clear();
  return outwards_in() == usual.outwards_in();
}

// If an axis belongs to both grids, the axes inside it must span the same number of ranks in each grid.
bool Layout::grids_agree() const {
  const std::array<int, most_axes> depths = axes->depths(order);
  const auto ranks_inside = [&](std::size_t row, unsigned grid) {
    AxisSet inside = axes->in_grids(grid);
    for (std::size_t other = 0; other < axes->size(); ++other)
      if (depths[other] <= depths[row]) inside &= ~(1U << other);
    return along(inside);
  };
  for (std::size_t row = 0; row < axes->size() && grids() == both_grids; ++row)
    if ((*axes)[row].grids == both_grids && size(row) > 1 && ranks_inside(row, dense_grid) != ranks_inside(row, expert_grid))
      return false;
  return true;
}

std::int64_t& Layout::operator[](std::string_view axis) {
  const std::size_t row = axes->row_of(axis);
  require(!(*axes)[row].follows(), "the size of {} follows from those of other axes", axis);
  return sizes[row];
}

std::int64_t& Layout::size_dividing(Divides what) {
  std::optional<std::size_t> found;
  for (std::size_t row = 0; row < axes->size(); ++row) {
    const AxisRow& axis = (*axes)[row];
    if (axis.divides == what && !axis.follows() && (!found || axis.takes_rest)) found = row;
  }
  require(found.has_value(), "no axis divides this quantity");
  return sizes[*found];
}

bool Layout::operator==(const Layout& other) const {
  const auto fields = [](const Layout& l) {
    return std::tie(l.axes, l.sizes, l.zero, l.hpz, l.sequence, l.schedule, l.chunks);
  };
  return fields(*this) == fields(other) && outwards_in() == other.outwards_in();
}

std::int64_t Layout::ranks() const { return along(axes->in_grids(dense_grid)); }

Layout inferred(Layout layout, std::int64_t world) {
  layout = with_rest(layout, world);
  if (const MaybeMisfit misfit = check_rest(layout, world)) {
    std::vector<Layout> others = shapes_of(*layout.axes, world, {{Divides::experts, layout.expert_ranks()}});
    for (Layout& other : others)
      if (other.repeats() > 1) other.zero = layout.zero;
    std::erase_if(others, [](const Layout& other) { return check_repeats(other).has_value(); });
    usage_error(misfit->what, misfit->numbers, fmt::format("try {}", nearest_of(layout, others)));
  }
  return layout;
}

Layout with_zero_ranks(Layout layout, std::int64_t ranks, const char* flag) {
  const AxisTable& axes = *layout.axes;
  const std::int64_t copies = layout.copies(), context = layout.context_ranks();
  const auto suits = [&](std::int64_t n) { return n > 0 && copies % n == 0 && n % context == 0; };
  if (!suits(ranks)) {
    std::vector<std::string> fitting;
    for (const std::int64_t n : divisors(copies))
      if (suits(n)) fitting.push_back(std::to_string(n));
    usage_error("groups of this size do not divide the replicas",
                fmt::format("{}: {} {}, {} copies of the model{}", to_string(layout), flag, ranks, copies,
                            context > 1 ? fmt::format(", {} context ranks in each group", context) : ""),
                fmt::format("try --{} {}", flag, either(fitting)));
  }
  for (std::size_t row = 0; row < axes.size(); ++row)
    if (axes[row].repeats)
      layout.sizes[row] = copies / ranks;
    else if (axes[row].takes_rest && !axes[row].follows())
      layout.sizes[row] = ranks / context;
  return layout;
}

Layout inferred(Layout layout, const LayoutLimits& limits) {
  layout = with_rest(layout, limits.world);
  if (!check_rest(layout, limits.world)) return layout;
  LayoutLimits others = limits;
  // Without a launcher, the layout determines how many ranks to start.
  others.world = std::max(limits.world, layout.ranks());
  require_fits(layout, others);
  return layout;
}

bool fits(const Layout& layout, const LayoutLimits& limits) { return !misfit_of(with_rest(layout, limits.world), limits); }

void require_fits(const Layout& layout, const LayoutLimits& limits) {
  const Layout whole = with_rest(layout, limits.world);
  const MaybeMisfit misfit = misfit_of(whole, limits);
  if (!misfit) return;
  std::vector<std::string> remedies = fitting_batches(layout, limits);
  if (!misfit->remedy.empty()) remedies.push_back(misfit->remedy);
  if (const std::string others = nearest_fitting(layout, limits); !others.empty()) remedies.push_back(others);
  usage_error(misfit->what, whole.ranks() > 0 ? fmt::format("{}: {}", to_string(whole), misfit->numbers) : misfit->numbers,
              remedies.empty()
                  ? fmt::format("no layout of {} ranks fits this model and batch: try fewer ranks", limits.world)
                  : "try " + join(remedies, ", or "));
}

std::vector<Layout> all_layouts(const LayoutLimits& limits) {
  std::vector<Layout> all;
  for (Layout layout : shapes_of(limits))
    for (const bool sequence : {false, true})
      for (const int zero :
           layout.copies() > 1 ? std::vector{0, 1, 2, 3} : std::vector{0, 3}) {  // even with one copy, ZeRO-3 differs from
                                                                                 // ZeRO-0
        layout.sequence = sequence;
        layout.zero = zero;
        if (layout.repeats() > 1 && layout.zero_ranks() == 1) continue;
        if ((!sequence || layout.shards() > 1) && fits(layout, limits)) all.push_back(layout);
      }
  return all;
}

}  // namespace chorale
