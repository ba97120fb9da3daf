// Pictures of pipelines: of a schedule that was simulated, or of a run that was measured, by the same code, so that the two can be laid
// side by side.
//
//   stage 0 │0  1        ▒0▒▒▒▒   ▒1▒▒▒▒│   0    forward of micro-batch 0 (of several chunks: 0a, 0b)
//   stage 1 │   0  ▒0▒▒▒▒1  ▒1▒▒▒▒      │   ▒0▒  its backward        ░0░  its gradients of the weights
//   time     0              5
#pragma once
#include <string>
#include <vector>

#include "parallel/pipeline/simulate.hpp"

namespace chorale {

// A line a stage, time to the right. Two timelines of one scale can be compared.
std::string draw_text(const PipelineTimeline& timeline, double columns_per_second);

// The scale at which a timeline takes at most so many columns. Where every event takes a multiple of one time, that time gets whole columns,
// and enough of them for its number.
double columns_per_second(const PipelineTimeline& timeline, std::int64_t most_columns = 120);

struct PipelinePanel {
  std::string name;
  PipelineTimeline timeline;
  std::string unit;  // " s"; none where times are counted in forward passes
};

// All panels one below another, on one scale of time.
std::string draw_svg(const std::vector<PipelinePanel>& panels, const std::string& title);

}  // namespace chorale
