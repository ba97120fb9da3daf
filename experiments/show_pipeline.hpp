// What `chorale show pipeline` says of pipeline schedules: one in full, or all of them as a price list.
#pragma once
#include <string>
#include <vector>

#include "parallel/pipeline/schedule.hpp"

namespace chorale {

// The words after `show`, and its numbers. Chunks 0: as few as a schedule takes.
struct PipelineQuestion {
  std::vector<std::string> words;
  PipelineShape shape;
};

void require_answer(const PipelineQuestion& question);                     // a usage error where there is none
std::string answer_in_text(const PipelineQuestion& question, bool steps);  // steps: a line a stage instead of the picture
std::string answer_in_svg(const PipelineQuestion& question);

}  // namespace chorale
