// Draws pipelines as text or SVG. The same code draws simulated schedules and measured runs, so both can be compared side by
// side.
//
//   stage 0 │0  1        ▒0▒▒▒▒   ▒1▒▒▒▒│   0    forward of micro-batch 0 (with several chunks: 0a, 0b)
//   stage 1 │   0  ▒0▒▒▒▒1  ▒1▒▒▒▒      │   ▒0▒  its backward        ░0░  its weight gradients
//   time     0              5
#pragma once
#include <string>
#include <vector>

#include "parallel/pipeline/simulate.hpp"

namespace chorale {

// One line per stage; time runs to the right. Timelines that are to be compared must be drawn with the same scale.
std::string draw_text(const PipelineTimeline& timeline, double columns_per_second);

// The scale at which a timeline takes at most `most_columns` columns. If all times are multiples of one unit of time, the
// unit gets a whole number of columns, wide enough for a label if possible.
double columns_per_second(const PipelineTimeline& timeline, std::int64_t most_columns = 120);

struct PipelinePanel {
  std::string name;
  PipelineTimeline timeline;
  std::string unit;  // the unit of the panel's times: " s", or empty if one forward pass takes 1
};

struct PipelineFrame {
  double width = 1200;
  double seconds = 0;    // the time that the full width represents; 0: the time of the longest panel
  bool headline = true;  // whether to draw the title; false if the page shows it beside the picture
};

// All panels, one below the other, above one time axis.
std::string draw_svg(const std::vector<PipelinePanel>& panels, const std::string& title, const PipelineFrame& frame = {});

}  // namespace chorale
