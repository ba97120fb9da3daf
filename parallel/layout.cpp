// The rules that a layout must satisfy: world, heads, experts, layers, batch, schedule, sequence. Each rule is a function
// that returns nullopt if the layout satisfies it, or else two lines of an error. The error's third line suggests the
// nearest layouts of the same number of ranks that satisfy all rules.
#include "parallel/layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>

#include "parallel/pipeline/schedule.hpp"
#include "src/base/error.hpp"
#include "src/base/text.hpp"

namespace chorale {
namespace {

struct Misfit {
  std::string what, numbers;
};
using MaybeMisfit = std::optional<Misfit>;

// "data 2 × tensor 2": the sizes of these axes.
std::string sizes_in_words(const Layout& l, AxisSet set, const char* between) {
  std::vector<std::string> words;
  for (std::size_t row = 0; row < l.axes->size(); ++row)
    if (contains(set, row)) words.push_back(fmt::format("{} {}", (*l.axes)[row].noun, l.sizes[row]));
  return join(words, between);
}

// The axes of the dense grid, with or without the axis whose size can be inferred.
AxisSet dense_axes(const Layout& l, bool with_rest = true) {
  AxisSet set = axes_of(*l.axes, dense_grid);
  for (std::size_t row = 0; row < l.axes->size(); ++row)
    if ((*l.axes)[row].takes_rest && !with_rest) set &= ~(1U << row);
  return set;
}

std::string world_of(const Layout& l, std::int64_t world) {
  return fmt::format("world {} / ({})", world, sizes_in_words(l, dense_axes(l, false), " × "));
}

// Reports an axis whose size could not be inferred.
MaybeMisfit check_rest(const Layout& l, std::int64_t world) {
  const AxisSet experts = dividing(*l.axes, Divides::experts, expert_grid);
  for (std::size_t row = 0; row < l.axes->size(); ++row) {
    const AxisRow& axis = (*l.axes)[row];
    if (!axis.takes_rest || l.size(row) != 0) continue;
    if (!axis.follows())
      return Misfit{"the layout does not divide the number of ranks",
                    fmt::format("{}_parallel = {} is not an integer", axis.noun, world_of(l, world))};
    return Misfit{"the expert ranks do not divide the replicas",
                  fmt::format("{} is not a multiple of {}", sizes_in_words(l, dividing(*l.axes, Divides::batch), " × "),
                              sizes_in_words(l, experts, " × "))};
  }
  return {};
}

MaybeMisfit check_world(const Layout& l, const LayoutLimits& limits) {
  if (MaybeMisfit misfit = check_rest(l, limits.world)) return misfit;
  const auto end = l.sizes.begin() + static_cast<std::ptrdiff_t>(l.axes->size());
  if (*std::min_element(l.sizes.begin(), end) < 1 || l.chunks < 1 || l.zero < 0 || l.zero > 3)
    return Misfit{"sizes must be 1 or more, and the ZeRO stage 0 to 3",
                  fmt::format("{}, chunks {}, zero {}",
                              sizes_in_words(l, dense_axes(l) | dividing(*l.axes, Divides::experts, expert_grid), ", "),
                              l.chunks, l.zero)};
  if (l.ranks() != limits.world)
    return Misfit{
        "the layout needs another number of ranks",
        fmt::format("{} = {} ranks; there are {}", sizes_in_words(l, dense_axes(l), " × "), l.ranks(), limits.world)};
  return {};
}

MaybeMisfit check_heads(const Layout& l, const LayoutLimits& limits) {
  const ModelShape& s = limits.shape;
  const std::string name = s.groups == s.heads
                               ? fmt::format("num-attention-heads {}", s.heads)
                               : fmt::format("num-query-groups {} (of num-attention-heads {})", s.groups, s.heads);
  if (s.groups < l.shards())
    return Misfit{"there are fewer key-value heads than tensor ranks",
                  fmt::format("{} is less than tensor {}", name, l.shards())};
  if (s.groups % l.shards() != 0)
    return Misfit{"the tensor ranks do not divide the heads",
                  fmt::format("{} is not a multiple of tensor {}", name, l.shards())};
  if (s.units() % l.shards() != 0)
    return Misfit{
        "the tensor ranks do not divide the MLP",
        fmt::format("its {} units (gcd of ffn-hidden-size {} and num-attention-heads {}) are not a multiple of tensor {}",
                    s.units(), s.ffn, s.heads, l.shards())};
  for (const auto& [name, width] :
       {std::pair{"moe-ffn-hidden-size", s.experts.ffn}, {"moe-shared-expert-intermediate-size", s.experts.shared_ffn}})
    if (s.experts.count > 0 && s.units_of(width) % l.shards() != 0)
      return Misfit{"the tensor ranks do not divide the experts",
                    fmt::format("the {} units (gcd of {} {} and num-attention-heads {}) are not a multiple of tensor {}",
                                s.units_of(width), name, width, s.heads, l.shards())};
  const std::int64_t blocks = (s.vocabulary + s.vocabulary_block() - 1) / s.vocabulary_block();
  if (blocks < l.shards())
    return Misfit{"there are fewer blocks of the vocabulary than tensor ranks",
                  fmt::format("vocab-size {} is {} blocks of {}; tensor is {}", s.vocabulary, blocks, s.vocabulary_block(),
                              l.shards())};
  return {};
}

MaybeMisfit check_experts(const Layout& l, const LayoutLimits& limits) {
  const std::int64_t ranks = l.expert_ranks(), experts = limits.shape.experts.count;
  if (ranks == 1 || (experts > 0 && experts % ranks == 0)) return {};
  if (experts == 0)
    return Misfit{"only a model with experts can divide them among ranks", fmt::format("num-experts 0, expert {}", ranks)};
  return Misfit{"the expert ranks do not divide the experts",
                fmt::format("num-experts {} is not a multiple of expert {}", experts, ranks)};
}

MaybeMisfit check_stages(const Layout& l, const LayoutLimits& limits) {
  if (l.chunks > 1 && l.stages() == 1)
    return Misfit{"only a pipeline can have several chunks per stage", fmt::format("pipeline 1, chunks {}", l.chunks)};
  if (l.stages() * l.chunks > limits.shape.layers)
    return Misfit{"there are more stages than layers",
                  fmt::format("pipeline {} × chunks {} = {}; num-layers is {}", l.stages(), l.chunks, l.stages() * l.chunks,
                              limits.shape.layers)};
  return {};
}

// The number of sequences that all replicas process at once. The batch must be a multiple of it.
std::int64_t batch_unit(const Layout& l, const LayoutLimits& limits) {
  return l.replicas() * std::max<std::int64_t>(1, limits.micro_batch);
}

MaybeMisfit check_batch(const Layout& l, const LayoutLimits& limits) {
  const std::int64_t unit = batch_unit(l, limits);
  const std::string micro = limits.micro_batch > 0 ? fmt::format("micro-batch-size {} × ", limits.micro_batch) : "";
  if (limits.global_batch % unit != 0)
    return Misfit{"the batch does not divide evenly",
                  fmt::format("global-batch-size {} must be a multiple of {}data_parallel {}{} (data_parallel = {})",
                              limits.global_batch, micro, l.replicas(), micro.empty() ? "" : fmt::format(" = {}", unit),
                              world_of(l, limits.world))};
  return {};
}

// The schedule's own rule. This check runs after check_batch, so the number of micro-batches is an integer.
MaybeMisfit check_schedule(const Layout& l, const LayoutLimits& limits) {
  if (l.stages() == 1 && l.schedule == Layout{}.schedule) return {};
  if (l.stages() == 1)
    return Misfit{"only a pipeline has a schedule", fmt::format("schedule is {}, pipeline 1", l.schedule)};
  const PipelineAlgorithm* const row = find_pipeline_schedule(l.schedule);
  const std::int64_t micro_batches = limits.global_batch / batch_unit(l, limits);
  const std::string why = row ? row->misfit({l.stages(), micro_batches, l.chunks}) : "there is no schedule of that name";
  if (why.empty()) return {};
  return Misfit{fmt::format("the schedule {} does not fit", l.schedule), why};
}

// Runs after check_batch, because it may divide the batch by the number of replicas.
MaybeMisfit check_sequence(const Layout& l, const LayoutLimits& limits) {
  if (!l.sequence) return {};
  if (l.shards() == 1)
    return Misfit{"sequence parallelism divides tokens among tensor ranks", "tensor is 1: there is only one tensor rank"};
  const std::int64_t share = l.stages() > 1 ? 1 : limits.global_batch / l.replicas();
  const std::int64_t micro = limits.micro_batch > 0 ? limits.micro_batch : share;
  if (micro * limits.shape.sequence % l.shards() != 0)
    return Misfit{"sequence parallelism cannot split the tokens evenly",
                  fmt::format("micro-batch-size {} × seq-length {} = {} tokens are not a multiple of tensor {}", micro,
                              limits.shape.sequence, micro * limits.shape.sequence, l.shards())};
  return {};
}

// Infers missing sizes.
Layout with_rest(Layout layout, std::int64_t world) {
  const AxisTable& axes = *layout.axes;
  for (std::size_t row = 0; row < axes.size(); ++row) {
    if (!axes[row].takes_rest || axes[row].follows() || layout.sizes[row] != 0) continue;
    const std::int64_t others = layout.along(axes_of(axes, dense_grid) & ~(1U << row));
    if (others > 0 && world % others == 0) layout.sizes[row] = world / others;
  }
  return layout;
}

MaybeMisfit misfit_of(const Layout& layout, const LayoutLimits& limits) {
  const Layout l = with_rest(layout, limits.world);
  for (const auto check :
       {check_world, check_heads, check_experts, check_stages, check_batch, check_schedule, check_sequence})
    if (MaybeMisfit misfit = check(l, limits)) return misfit;
  return {};
}

// Every way to write `world` as a product of axis sizes. `shards`, `stages` and `experts` are the largest sizes of axes that
// divide the width, the layers and the experts. In the result, the size of the outermost axis varies slowest.
std::vector<Layout> shapes_of(const AxisTable& axes, std::int64_t world, std::int64_t shards, std::int64_t stages,
                              std::int64_t experts) {
  std::vector<std::size_t> rows;
  for (std::size_t row = 0; row < axes.size(); ++row)
    if (!axes[row].takes_rest) rows.push_back(row);
  std::sort(rows.begin(), rows.end(), [&](std::size_t a, std::size_t b) { return axes[a].depth < axes[b].depth; });
  Layout plain{.axes = &axes};
  for (std::size_t row = 0; row < axes.size(); ++row) plain.sizes[row] = axes[row].unnamed_size();
  std::vector<Layout> all{plain};
  for (const std::size_t row : rows) {
    const std::int64_t most = axes[row].divides == Divides::layers    ? stages
                              : axes[row].divides == Divides::width   ? shards
                              : axes[row].divides == Divides::experts ? std::max<std::int64_t>(experts, 1)
                                                                      : world;
    std::vector<Layout> longer;
    for (Layout layout : all)
      for (std::int64_t size = 1; size <= std::min(world, most); ++size) {
        layout.sizes[row] = size;
        if (with_rest(layout, world).ranks() == world) longer.push_back(layout);
      }
    all = std::move(longer);
  }
  for (Layout& layout : all) layout = with_rest(layout, world);
  std::erase_if(all, [&](const Layout& layout) { return check_rest(layout, world).has_value(); });
  return all;
}

std::vector<Layout> shapes_of(const LayoutLimits& limits) {
  return shapes_of(*limits.axes, limits.world, limits.shape.groups, limits.shape.layers, limits.shape.experts.count);
}

double distance(const Layout& a, const Layout& b) {
  const auto apart = [](std::int64_t x, std::int64_t y) {
    return x > 0 && y > 0 ? std::abs(std::log2(static_cast<double>(x) / static_cast<double>(y))) : 0;
  };
  double sum = 0;
  for (std::size_t row = 0; row < a.axes->size(); ++row) sum += apart(a.sizes[row], b.sizes[row]);
  return sum;
}

// "dp4.tp2, dp2.tp4 or dp2.tp2.pp2"
std::string nearest_of(const Layout& asked, std::vector<Layout> layouts) {
  std::stable_sort(layouts.begin(), layouts.end(),
                   [&](const Layout& a, const Layout& b) { return distance(asked, a) < distance(asked, b); });
  layouts.resize(std::min<std::size_t>(layouts.size(), 3));
  std::vector<std::string> words;
  for (const Layout& layout : layouts) words.push_back(to_string(layout));
  return either(words);
}

// The layouts that fit and are closest to `asked`. They keep its ZeRO stage, sp, order and schedule where possible.
std::string nearest_fitting(const Layout& asked, const LayoutLimits& limits) {
  std::vector<Layout> fitting;
  for (Layout layout : shapes_of(limits)) {
    layout.zero = asked.zero, layout.order = asked.order;
    layout.sequence = asked.sequence && layout.shards() > 1;
    Layout scheduled = layout;
    if (layout.stages() > 1) scheduled.schedule = asked.schedule, scheduled.chunks = asked.chunks;
    if (fits(scheduled, limits))
      fitting.push_back(scheduled);
    else if (fits(layout, limits))
      fitting.push_back(layout);
  }
  return nearest_of(asked, fitting.empty() ? all_layouts(limits) : fitting);
}

// Other batch sizes with which this layout fits.
std::vector<std::string> fitting_batches(const Layout& asked, const LayoutLimits& limits) {
  const Layout layout = with_rest(asked, limits.world);
  if (layout.ranks() != limits.world) return {};
  std::vector<std::string> batches, micro_batches, remedies;
  const std::int64_t unit = batch_unit(layout, limits), below = limits.global_batch / unit;
  for (const std::int64_t step : {-1, 1})  // some schedules need a multiple of the stages
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

std::int64_t Layout::along(AxisSet set) const {
  std::int64_t product = 1;
  for (std::size_t row = 0; row < axes->size(); ++row)
    if (contains(set, row)) product *= size(row);
  return product;
}

// The axes of only one grid have the same product in both grids: dp = edp · ep.
std::int64_t Layout::size(std::size_t row) const {
  if (!(*axes)[row].follows()) return sizes[row];
  const AxisSet dense = axes_of(*axes, dense_grid), expert = axes_of(*axes, expert_grid);
  const std::int64_t whole = along(dense & ~expert), others = along(expert & ~dense & ~(1U << row));
  return others > 0 && whole % others == 0 ? whole / others : 0;
}

AxisSet Layout::divided(AxisSet set) const {
  for (std::size_t row = 0; row < axes->size(); ++row)
    if (size(row) == 1) set &= ~(1U << row);
  return set;
}

AxisOrder Layout::outwards_in() const {
  const std::array<int, most_axes> depths = depths_of(*axes, order);
  AxisOrder names = names_of(*axes, axes_of(*axes, dense_grid));
  std::erase_if(names, [&](const std::string& name) { return (*this)[name] == 1; });
  std::ranges::sort(names, {}, [&](const std::string& name) { return depths[row_of(*axes, name)]; });
  return names;
}

bool Layout::has_usual_order() const {
  Layout usual = *this;
  usual.order.clear();
  return outwards_in() == usual.outwards_in();
}

bool Layout::operator==(const Layout& other) const {
  const auto fields = [](const Layout& l) { return std::tie(l.axes, l.sizes, l.zero, l.sequence, l.schedule, l.chunks); };
  return fields(*this) == fields(other) && outwards_in() == other.outwards_in();
}

std::int64_t Layout::ranks() const { return along(axes_of(*axes, dense_grid)); }

Layout inferred(Layout layout, std::int64_t world) {
  layout = with_rest(layout, world);
  if (const MaybeMisfit misfit = check_rest(layout, world))
    usage_error(
        misfit->what, misfit->numbers,
        fmt::format("try {}", nearest_of(layout, shapes_of(*layout.axes, world, world, world, layout.expert_ranks()))));
  return layout;
}

Layout inferred(Layout layout, const LayoutLimits& limits) {
  layout = with_rest(layout, limits.world);
  if (!check_rest(layout, limits.world)) return layout;
  LayoutLimits others = limits;
  others.world = std::max(limits.world, layout.ranks());  // without a launcher, the layout says how many ranks to start
  require_fits(layout, others);
  return layout;
}

bool fits(const Layout& layout, const LayoutLimits& limits) { return !misfit_of(layout, limits); }

void require_fits(const Layout& layout, const LayoutLimits& limits) {
  const MaybeMisfit misfit = misfit_of(layout, limits);
  if (!misfit) return;
  std::vector<std::string> remedies = fitting_batches(layout, limits);
  if (const std::string others = nearest_fitting(layout, limits); !others.empty()) remedies.push_back(others);
  const Layout whole = with_rest(layout, limits.world);
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
           layout.replicas() > 1 ? std::vector{0, 1, 2, 3} : std::vector{0, 3}) {  // ZeRO-3 differs even with one replica
        layout.sequence = sequence, layout.zero = zero;
        if ((!sequence || layout.shards() > 1) && fits(layout, limits)) all.push_back(layout);
      }
  return all;
}

}  // namespace chorale
