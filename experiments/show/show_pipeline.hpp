// The text that `chorale show pipeline` prints about pipeline schedules: one schedule in full, or a table of all with their
// costs.
#pragma once
#include <string>
#include <vector>

#include "parallel/pipeline/schedule.hpp"

namespace chorale {

// The positional arguments of `show`, and the shape that its options give. If shape.chunks is 0, the schedule gets the
// minimum number of chunks that it allows.
struct PipelineQuestion {
  std::vector<std::string> words;
  PipelineShape shape;
};

void require_answer(const PipelineQuestion& question);  // throws a usage error if the schedule is unknown or does not fit
std::string answer_in_text(const PipelineQuestion& question,
                           bool steps);  // `steps`: lists steps instead of a picture
std::string answer_in_svg(const PipelineQuestion& question);

}  // namespace chorale
