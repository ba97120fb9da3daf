// A layout: how the ranks of a world share a model and its data, written as one word:
//
//   dp2.tp2.pp2.z1.sp       8 ranks: 2 replicas with ZeRO-1; each has 2 pipeline stages of 2 tensor ranks; sequence parallel
//
// The axes are rows of a table (axes.hpp); from the outermost to the innermost: pp, dp, tp. The product of their sizes is
// the world size. If dp is left out, it is inferred.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "layers/shape.hpp"
#include "parallel/axes.hpp"
#include "parallel/pipeline/schedule.hpp"

namespace chorale {

// The schedule for this many model chunks per stage, if none is named.
std::string default_schedule(std::int64_t chunks);

struct Layout {
  const AxisTable* axes = &all_axes();
  std::array<std::int64_t, most_axes> sizes = {1, 1, 1, 1, 1, 1, 1, 1};  // by row; 0: inferred from the world
  int zero = 0;                                                          // ZeRO stage, 0 to 3
  bool sequence = false;                                                 // sequence parallel over the tensor axis
  std::string schedule = default_schedule(1);                            // the pipeline schedule's name in its table
  std::int64_t chunks = 1;                                               // model chunks per stage

  std::int64_t& operator[](std::string_view axis) { return sizes[row_of(*axes, axis)]; }
  std::int64_t operator[](std::string_view axis) const { return sizes[row_of(*axes, axis)]; }
  std::int64_t along(AxisSet set) const;  // the product of the axes' sizes; 0 while one of them is to be inferred
  std::int64_t replicas() const { return along(dividing(*axes, Divides::batch)); }
  std::int64_t shards() const { return along(dividing(*axes, Divides::width)); }
  std::int64_t stages() const { return along(dividing(*axes, Divides::layers)); }
  std::int64_t ranks() const;
  bool operator==(const Layout&) const = default;
};

std::string to_string(const Layout& layout);  // "dp2.tp2.pp2.z1.sp": always dp, and the parts that differ from the default
// Reads a layout word. Parts come in any order, each at most once. Besides those above there are vN (chunks) and a
// schedule's name, optional with several chunks. A usage error names the wrong part and why. World 0: the world is not
// known yet, and sizes to be inferred stay 0.
Layout parse_layout(const std::string& word, std::int64_t world, const AxisTable& axes = all_axes());
std::vector<std::string> schedule_names();  // all pipeline schedules
// The shape of the layout's pipeline, with the placement of its schedule.
PipelineShape pipeline_of(const Layout& layout, std::int64_t micro_batches = 1);

// The model, batch and world that a layout must fit.
struct LayoutLimits {
  ModelShape shape;
  std::int64_t world = 1, global_batch = 1,
               micro_batch = 0;  // 0: a rank's whole share, or one sequence in a pipeline
  const AxisTable* axes = &all_axes();
};

// Throws a usage error if the layout does not fit. It suggests the nearest layouts of the same world that do.
void require_fits(const Layout& layout, const LayoutLimits& limits);
bool fits(const Layout& layout, const LayoutLimits& limits);
// Replaces a size of 0 by the world divided by the other sizes. If that is not an integer, a usage error suggests layouts of
// that world; with limits, layouts that also fit.
Layout inferred(Layout layout, std::int64_t world);
Layout inferred(Layout layout, const LayoutLimits& limits);
std::vector<Layout> all_layouts(const LayoutLimits& limits);  // all that fit, with every strategy

}  // namespace chorale
