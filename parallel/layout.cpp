// What a layout must fit: the world, the heads, the sequence, the layers, the batch. Each rule is a function that gives nothing, or what is
// wrong in two lines; the third names the layouts of that world that are nearest and do fit.
#include "parallel/layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "parallel/pipeline/schedule.hpp"
#include "src/base/error.hpp"
#include "src/base/text.hpp"

namespace chorale {
namespace {

struct Misfit {
  std::string what, numbers;
};
using MaybeMisfit = std::optional<Misfit>;

std::string world_of(const Layout& l, std::int64_t world) {
  return fmt::format("world {} / (tensor {} × pipeline {})", world, l.tensor, l.pipeline);
}

MaybeMisfit check_world(const Layout& l, const LayoutLimits& limits) {
  if (l.data == 0)  // with_data could not infer it
    return Misfit{"the layout does not divide the world",
                  fmt::format("data_parallel = {} is no whole number", world_of(l, limits.world))};
  if (l.data < 1 || l.tensor < 1 || l.pipeline < 1 || l.chunks < 1 || l.zero < 0 || l.zero > 3)
    return Misfit{
        "sizes are 1 or more, and stages of ZeRO 0 to 3",
        fmt::format("data {}, tensor {}, pipeline {}, chunks {}, zero {}", l.data, l.tensor, l.pipeline, l.chunks, l.zero)};
  if (l.ranks() != limits.world)
    return Misfit{"the layout is not of this world",
                  fmt::format("data {} × tensor {} × pipeline {} = {} ranks; there are {}", l.data, l.tensor, l.pipeline,
                              l.ranks(), limits.world)};
  return {};
}

MaybeMisfit check_heads(const Layout& l, const LayoutLimits& limits) {
  const ModelShape& s = limits.shape;
  const std::string name = s.groups == s.heads
                               ? fmt::format("num-attention-heads {}", s.heads)
                               : fmt::format("num-query-groups {} (of num-attention-heads {})", s.groups, s.heads);
  if (s.groups < l.tensor)
    return Misfit{"there are fewer heads with a key and value than tensor ranks",
                  fmt::format("{} is less than tensor {}", name, l.tensor)};
  if (s.groups % l.tensor != 0)
    return Misfit{"tensor ranks do not divide the heads", fmt::format("{} is no multiple of tensor {}", name, l.tensor)};
  if (s.units() % l.tensor != 0)
    return Misfit{
        "tensor ranks do not divide the MLP",
        fmt::format("its {} units (gcd of ffn-hidden-size {} and num-attention-heads {}) are no multiple of tensor {}",
                    s.units(), s.ffn, s.heads, l.tensor)};
  const std::int64_t blocks = (s.vocabulary + s.vocabulary_block() - 1) / s.vocabulary_block();
  if (blocks < l.tensor)
    return Misfit{
        "there are fewer blocks of the vocabulary than tensor ranks",
        fmt::format("vocab-size {} is {} blocks of {}; tensor is {}", s.vocabulary, blocks, s.vocabulary_block(), l.tensor)};
  return {};
}

MaybeMisfit check_stages(const Layout& l, const LayoutLimits& limits) {
  if (l.chunks > 1 && l.pipeline == 1)
    return Misfit{"only stages of a pipeline have several chunks", fmt::format("pipeline 1, chunks {}", l.chunks)};
  if (l.pipeline * l.chunks > limits.shape.layers)
    return Misfit{"there are more stages than layers",
                  fmt::format("pipeline {} × chunks {} = {}; num-layers is {}", l.pipeline, l.chunks, l.pipeline * l.chunks,
                              limits.shape.layers)};
  return {};
}

// The sequences that are a whole number of times in the batch: those that the replicas take at once.
std::int64_t batch_unit(const Layout& l, const LayoutLimits& limits) {
  return l.data * std::max<std::int64_t>(1, limits.micro_batch);
}

MaybeMisfit check_batch(const Layout& l, const LayoutLimits& limits) {
  const std::int64_t unit = batch_unit(l, limits);
  const std::string micro = limits.micro_batch > 0 ? fmt::format("micro-batch-size {} × ", limits.micro_batch) : "";
  if (limits.global_batch % unit != 0)
    return Misfit{
        "batch sizes do not divide",
        fmt::format("global-batch-size {} must be a multiple of {}data_parallel {}{}, which is {}", limits.global_batch,
                    micro, l.data, micro.empty() ? "" : fmt::format(" = {}", unit), world_of(l, limits.world))};
  return {};
}

// The schedule's own rule; after the batch, which its micro-batches divide.
MaybeMisfit check_schedule(const Layout& l, const LayoutLimits& limits) {
  if (l.pipeline == 1 && l.schedule == Layout{}.schedule) return {};
  if (l.pipeline == 1)
    return Misfit{"only a pipeline has a schedule", fmt::format("schedule is {}, pipeline 1", l.schedule)};
  const PipelineAlgorithm* const row = find_pipeline_schedule(l.schedule);
  const std::int64_t micro_batches = limits.global_batch / batch_unit(l, limits);
  const std::string why = row ? row->misfit({l.pipeline, micro_batches, l.chunks}) : "there is none of that name";
  if (why.empty()) return {};
  return Misfit{fmt::format("the schedule {} does not fit", l.schedule), why};
}

// After the batch, whose share may be the micro-batch.
MaybeMisfit check_sequence(const Layout& l, const LayoutLimits& limits) {
  if (!l.sequence) return {};
  if (l.tensor == 1)
    return Misfit{"sequence parallelism divides tokens among tensor ranks", "tensor is 1: there is none to share with"};
  const std::int64_t share = l.pipeline > 1 ? 1 : limits.global_batch / l.data;
  const std::int64_t micro = limits.micro_batch > 0 ? limits.micro_batch : share;
  if (micro * limits.shape.sequence % l.tensor != 0)
    return Misfit{"sequence parallelism does not divide the tokens",
                  fmt::format("micro-batch-size {} × seq-length {} = {} tokens are no multiple of tensor {}", micro,
                              limits.shape.sequence, micro * limits.shape.sequence, l.tensor)};
  return {};
}

Layout with_data(Layout layout, std::int64_t world) {
  const std::int64_t model = layout.tensor * layout.pipeline;
  if (layout.data == 0 && model > 0 && world % model == 0) layout.data = world / model;
  return layout;
}

MaybeMisfit misfit_of(const Layout& layout, const LayoutLimits& limits) {
  const Layout l = with_data(layout, limits.world);
  for (const auto check : {check_world, check_heads, check_stages, check_batch, check_schedule, check_sequence})
    if (MaybeMisfit misfit = check(l, limits)) return misfit;
  return {};
}

// Every way to write the world as dp × tp × pp, with so many shards and stages at most.
std::vector<Layout> shapes_of(std::int64_t world, std::int64_t shards, std::int64_t stages) {
  std::vector<Layout> all;
  for (std::int64_t pipeline = 1; pipeline <= std::min(world, stages); ++pipeline)
    for (std::int64_t tensor = 1; world % pipeline == 0 && tensor <= std::min(world / pipeline, shards); ++tensor)
      if (world / pipeline % tensor == 0)
        all.push_back({.data = world / pipeline / tensor, .tensor = tensor, .pipeline = pipeline});
  return all;
}

std::vector<Layout> shapes_of(const LayoutLimits& limits) {
  return shapes_of(limits.world, limits.shape.groups, limits.shape.layers);
}

double distance(const Layout& a, const Layout& b) {
  const auto apart = [](std::int64_t x, std::int64_t y) {
    return x > 0 && y > 0 ? std::abs(std::log2(static_cast<double>(x) / static_cast<double>(y))) : 0;
  };
  return apart(a.data, b.data) + apart(a.tensor, b.tensor) + apart(a.pipeline, b.pipeline);
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

// The other layouts that fit and are as much as can be what was asked.
std::string nearest_fitting(const Layout& asked, const LayoutLimits& limits) {
  std::vector<Layout> fitting;
  for (Layout layout : shapes_of(limits)) {
    layout.zero = asked.zero;
    layout.sequence = asked.sequence && layout.tensor > 1;
    Layout scheduled = layout;
    if (layout.pipeline > 1) scheduled.schedule = asked.schedule, scheduled.chunks = asked.chunks;
    if (fits(scheduled, limits))
      fitting.push_back(scheduled);
    else if (fits(layout, limits))
      fitting.push_back(layout);
  }
  return nearest_of(asked, fitting.empty() ? all_layouts(limits) : fitting);
}

// What else makes this layout fit: other sizes of batches.
std::vector<std::string> fitting_batches(const Layout& asked, const LayoutLimits& limits) {
  const Layout layout = with_data(asked, limits.world);
  if (layout.ranks() != limits.world) return {};
  std::vector<std::string> batches, micro_batches, remedies;
  const std::int64_t unit = batch_unit(layout, limits) * (layout.schedule == "interleaved" ? layout.pipeline : 1);
  for (const std::int64_t batch : {limits.global_batch / unit * unit, (limits.global_batch / unit + 1) * unit}) {
    LayoutLimits other = limits;
    other.global_batch = batch;
    if (batch > 0 && fits(layout, other)) batches.push_back(fmt::format("{}", batch));
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

Layout infer_data(Layout layout, std::int64_t world) {
  layout = with_data(layout, world);
  if (layout.data == 0)
    usage_error("the layout does not divide the world",
                fmt::format("data_parallel = {} is no whole number", world_of(layout, world)),
                fmt::format("try {}", nearest_of(layout, shapes_of(world, world, world))));
  return layout;
}

Layout infer_data(Layout layout, const LayoutLimits& limits) {
  layout = with_data(layout, limits.world);
  if (layout.data == 0) require_fits(layout, limits);
  return layout;
}

bool fits(const Layout& layout, const LayoutLimits& limits) { return !misfit_of(layout, limits); }

void require_fits(const Layout& layout, const LayoutLimits& limits) {
  const MaybeMisfit misfit = misfit_of(layout, limits);
  if (!misfit) return;
  std::vector<std::string> remedies = fitting_batches(layout, limits);
  if (const std::string others = nearest_fitting(layout, limits); !others.empty()) remedies.push_back(others);
  const Layout whole = with_data(layout, limits.world);
  usage_error(misfit->what, whole.data > 0 ? fmt::format("{}: {}", to_string(whole), misfit->numbers) : misfit->numbers,
              remedies.empty()
                  ? fmt::format("no layout of {} ranks fits this model and batch: try fewer ranks", limits.world)
                  : "try " + join(remedies, ", or "));
}

std::vector<Layout> all_layouts(const LayoutLimits& limits) {
  std::vector<Layout> all;
  for (Layout layout : shapes_of(limits))
    for (const bool sequence : {false, true})
      for (const int zero : layout.data > 1 ? std::vector{0, 1, 2, 3} : std::vector{0, 3}) {  // 3 keeps shards apart anyway
        layout.sequence = sequence, layout.zero = zero;
        if ((!sequence || layout.tensor > 1) && fits(layout, limits)) all.push_back(layout);
      }
  return all;
}

}  // namespace chorale
