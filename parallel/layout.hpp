// A layout: how the ranks of a world share a model and its data. One word says it:
//
//   dp2.tp2.pp2.z1.sp       8 ranks: 2 replicas of the model (ZeRO-1 among them), each cut in 2 across and in 2 along, sequence parallel
//
// The axes from the outermost to the innermost are pp, dp, tp; their sizes multiply to the world, dp is inferred where it is left out.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "layers/shape.hpp"

namespace chorale {

struct Layout {
  std::int64_t data = 1, tensor = 1, pipeline = 1;  // sizes of the axes; data 0: inferred from the world
  int zero = 0;                                     // ZeRO stage, 0 to 3
  bool sequence = false;                            // sequence parallel over the tensor axis
  std::string schedule = "1f1b";                    // of the pipeline: a name of its table
  std::int64_t chunks = 1;                          // of the model, that each stage has (interleaved)

  std::int64_t ranks() const { return data * tensor * pipeline; }
  bool operator==(const Layout&) const = default;
};

std::string to_string(const Layout& layout);  // "dp2.tp2.pp2.z1.sp"; only what is not the default, dp always
// Parts in any order, each once; beside those above vN (chunks) and a schedule's name, which several chunks need not say. A usage error
// says what is wrong with which part. World 0: not known yet, and data stays 0 where it is left out.
Layout parse_layout(const std::string& word, std::int64_t world);
std::vector<std::string> schedule_names();  // of the table of pipeline schedules

// What a layout must fit.
struct LayoutLimits {
  ModelShape shape;
  std::int64_t world = 1, global_batch = 1,
               micro_batch = 0;  // 0: the whole share of a rank, or one sequence under a pipeline
};

// A usage error of three lines, with the nearest layouts of that world that do fit, when this one does not.
void require_fits(const Layout& layout, const LayoutLimits& limits);
bool fits(const Layout& layout, const LayoutLimits& limits);
// Data 0 becomes what is left of the world; a usage error when that is no whole number, with layouts of that world, or those that fit.
Layout infer_data(Layout layout, std::int64_t world);
Layout infer_data(Layout layout, const LayoutLimits& limits);
std::vector<Layout> all_layouts(const LayoutLimits& limits);  // that fit, of every strategy

}  // namespace chorale
