// A layout: how the ranks of a world share a model and its data. One word says it:
//
//   dp2.tp2.pp2.z1.sp       8 ranks: 2 replicas of the model (ZeRO-1 among them), each cut in 2 across and in 2 along, sequence parallel
//
// The axes are rows of a table (axes.hpp): from the outermost to the innermost pp, dp, tp. Their sizes multiply to the world; dp is inferred
// where it is left out.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "layers/shape.hpp"
#include "parallel/axes.hpp"
#include "parallel/pipeline/schedule.hpp"

namespace chorale {

// Of so many chunks of the model a stage, where none is named.
std::string default_schedule(std::int64_t chunks);

struct Layout {
  const AxisTable* axes = &all_axes();
  std::array<std::int64_t, most_axes> sizes = {1, 1, 1, 1, 1, 1, 1, 1};  // by row; 0: inferred from the world
  int zero = 0;                                                          // ZeRO stage, 0 to 3
  bool sequence = false;                                                 // sequence parallel over the tensor axis
  std::string schedule = default_schedule(1);                            // of the pipeline: a name of its table
  std::int64_t chunks = 1;                                               // of the model, that each stage has

  std::int64_t& operator[](std::string_view axis) { return sizes[row_of(*axes, axis)]; }
  std::int64_t operator[](std::string_view axis) const { return sizes[row_of(*axes, axis)]; }
  std::int64_t along(AxisSet set) const;  // the product of their sizes; 0 while one of them is to be inferred
  std::int64_t replicas() const { return along(dividing(*axes, Divides::batch)); }
  std::int64_t shards() const { return along(dividing(*axes, Divides::width)); }
  std::int64_t stages() const { return along(dividing(*axes, Divides::layers)); }
  std::int64_t ranks() const;
  bool operator==(const Layout&) const = default;
};

std::string to_string(const Layout& layout);  // "dp2.tp2.pp2.z1.sp"; only what is not the default, dp always
// Parts in any order, each once; beside those above vN (chunks) and a schedule's name, which several chunks need not say. A usage error
// says what is wrong with which part. World 0: not known yet, and what is to be inferred stays 0.
Layout parse_layout(const std::string& word, std::int64_t world, const AxisTable& axes = all_axes());
std::vector<std::string> schedule_names();  // of the table of pipeline schedules
// Its pipeline, with the placement that its schedule has.
PipelineShape pipeline_of(const Layout& layout, std::int64_t micro_batches = 1);

// What a layout must fit.
struct LayoutLimits {
  ModelShape shape;
  std::int64_t world = 1, global_batch = 1,
               micro_batch = 0;  // 0: the whole share of a rank, or one sequence under a pipeline
  const AxisTable* axes = &all_axes();
};

// A usage error of three lines, with the nearest layouts of that world that do fit, when this one does not.
void require_fits(const Layout& layout, const LayoutLimits& limits);
bool fits(const Layout& layout, const LayoutLimits& limits);
// A size of 0 becomes what is left of the world; a usage error when that is no whole number, with layouts of that world, or those that fit.
Layout inferred(Layout layout, std::int64_t world);
Layout inferred(Layout layout, const LayoutLimits& limits);
std::vector<Layout> all_layouts(const LayoutLimits& limits);  // that fit, of every strategy

}  // namespace chorale
