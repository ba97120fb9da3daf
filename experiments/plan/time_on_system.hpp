// The predicted time of a step on a system of accelerators, for people: `chorale plan --machine selene`.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "experiments/plan/whole_training.hpp"
#include "experiments/plan/wording.hpp"
#include "parallel/planner/step.hpp"
#include "src/base/text_table.hpp"

namespace chorale::plan {

// The seconds of a rank, by what they are spent on. The means over all ranks add up to the step.
using Shares = std::vector<std::pair<std::string, double>>;
Shares mean_shares(const PredictedStep& step);
Shares shares_of(const PredictedStep& step, std::size_t rank_class);  // of a rank of this class; classes have equal kinds

// Says where the time goes and what the step costs. If the tokens of a whole training are given, it adds the training's
// time, GPU-hours and energy.
std::string words_for_system(const PredictedStep& step, const StepRequest& request, const WholeTraining& whole);
// The same by class of ranks, one row each.
TextTable time_table(const PredictedStep& step, const StepRequest& request, const Wording& as);
// The days of a whole training, and a line that adds GPU-hours and energy. The line is "" if no tokens are given.
double days_of(const PredictedStep& step, const StepRequest& request, const WholeTraining& whole);
std::string words_for_training(const PredictedStep& step, const StepRequest& request, const WholeTraining& whole);
// A picture of the pipeline: a Chrome trace if the file ends with .json, text if it ends with .txt, or SVG.
void draw(const PredictedStep& step, const std::string& title, const std::string& file);

}  // namespace chorale::plan
