// Predicts the time of a step before the run begins (parallel/forecast/step.hpp), and records it in /forecast, so that it
// can be compared with the measured time.
#pragma once
#include "experiments/common/run_record.hpp"
#include "parallel/forecast/step.hpp"

namespace chorale::train {

// Called on rank 0. Without compute rates in the machine file, only a debug line says why nothing is predicted.
void record_forecast(RunRecord& run, const PlanRequest& request);

// "a step takes 1.2 s: ranks compute for 0.4 s of it on average"
std::string in_words(const StepTime& time);

}  // namespace chorale::train
