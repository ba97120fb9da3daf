// The predicted time of a step on a system of accelerators, for people: `chorale plan --machine selene`.
#pragma once
#include <string>

#include "experiments/plan/whole_training.hpp"
#include "parallel/planner/step.hpp"

namespace chorale::plan {

// Where the time goes, by stage, and the step's cost; with the time, GPU-hours and energy of a whole training if its tokens
// are given.
std::string words_for_system(const PredictedStep& step, const StepRequest& request, const WholeTraining& whole,
                             const std::string& format);
// A picture of the pipeline: SVG, or a Chrome trace if the file ends with .json.
void draw(const PredictedStep& step, const std::string& title, const std::string& file);

}  // namespace chorale::plan
