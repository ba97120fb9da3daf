// Draws pipelines as text or SVG. The same code draws simulated schedules and measured runs, so that both can be compared
// side by side.
//
//   stage 0 │0  1        ▒0▒▒▒▒   ▒1▒▒▒▒│   0    forward of micro-batch 0 (with several chunks: 0a, 0b)
//   stage 1 │   0  ▒0▒▒▒▒1  ▒1▒▒▒▒      │   ▒0▒  its backward        ░0░  its weight gradients
//   time     0              5
#pragma once
#include <string>
#include <vector>

#include "parallel/pipeline/simulate.hpp"

namespace chorale {

// Draws one line per stage; time runs to the right. Use the same scale for all timelines that are compared.
std::string draw_text(const PipelineTimeline& timeline, double columns_per_second);

// Returns a scale at which a timeline takes at most `most_columns` columns. If all times are multiples of one unit of time,
// a unit takes an integer number of columns, and enough columns for a label if possible.
double columns_per_second(const PipelineTimeline& timeline, std::int64_t most_columns = 120);

struct PipelinePanel {
  std::string name;
  PipelineTimeline timeline;
  std::string unit;  // unit of the panel's times, such as " s"; empty if times are multiples of a forward pass
};

struct PipelineFrame {
  double width = 1200;
  double seconds = 0;    // the time that the full width represents; 0 for the time of the longest panel
  bool headline = true;  // whether to draw the title; false if the page shows the title beside the picture
};

// All panels, one below the other, above one time axis.
std::string draw_svg(const std::vector<PipelinePanel>& panels, const std::string& title, const PipelineFrame& frame = {});

}  // namespace chorale
