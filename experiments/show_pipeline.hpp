// The text that `chorale show pipeline` prints about pipeline schedules: one in full, or all as a price list.
#pragma once
#include <string>
#include <vector>

#include "parallel/pipeline/schedule.hpp"

namespace chorale {

// The words after `show`, and its numbers. If shape.chunks is 0, the schedule gets as few as it allows.
struct PipelineQuestion {
  std::vector<std::string> words;
  PipelineShape shape;
};

void require_answer(const PipelineQuestion& question);  // a usage error if the schedule is unknown or does not fit
std::string answer_in_text(const PipelineQuestion& question, bool steps);  // steps: one line per stage, not the picture
std::string answer_in_svg(const PipelineQuestion& question);

}  // namespace chorale
