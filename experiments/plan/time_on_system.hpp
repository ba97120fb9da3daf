// Shows the predicted time of a step on a system of accelerators, as text: `chorale plan --machine selene`.
#pragma once
#include <string>

#include "experiments/common/time_shares.hpp"
#include "experiments/plan/whole_training.hpp"
#include "experiments/plan/wording.hpp"
#include "parallel/prediction/system_step.hpp"
#include "src/base/text_table.hpp"

namespace chorale::plan {

// Says how the time of a step is divided and what the step costs. If the tokens of a complete training are given, adds the
// time, GPU-hours and energy of the training.
std::string words_for_system(const PredictedStep& step, const StepRequest& request, const WholeTraining& whole);
// The values of words_for_system() as a table, with one row for each class of ranks.
TextTable time_table(const PredictedStep& step, const StepRequest& request, const Wording& as);
// The days of a complete training, and a line that adds GPU-hours and energy. The line is "" if no tokens are given.
double days_of(const PredictedStep& step, const StepRequest& request, const WholeTraining& whole);
std::string words_for_training(const PredictedStep& step, const StepRequest& request, const WholeTraining& whole);
// Draws the pipeline: a Chrome trace if the file name ends with .json, text if it ends with .txt, otherwise SVG.
void draw(const PredictedStep& step, const std::string& title, const std::string& file);

}  // namespace chorale::plan
