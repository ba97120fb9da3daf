// Predicts the time of a step before the run begins (parallel/prediction/cpu_step.hpp). The prediction is recorded in
// /forecast, so that it can be compared with the measured time.
#pragma once
#include "experiments/common/run_record.hpp"
#include "parallel/prediction/cpu_step.hpp"

namespace chorale::train {

// Called on rank 0. If the machine file has no compute rates, nothing is predicted, and a debug line says why.
void record_prediction(RunRecord& run, const PlanRequest& request);

// "a step takes 1.2 s: ranks compute for 0.4 s of it on average"
std::string in_words(const StepTime& time);

}  // namespace chorale::train
