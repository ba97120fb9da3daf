#include "experiments/train/prediction.hpp"

#include <fmt/format.h>

#include <numeric>

#include "src/base/text.hpp"

namespace chorale::train {

std::string in_words(const StepTime& time) {
  const double sum = std::accumulate(time.computes.begin(), time.computes.end(), 0.0);
  const auto words = [](double seconds) {  // three digits, because layouts often differ by a few percent
    return seconds >= 1 && seconds < 10 ? fmt::format("{:.2f} s", seconds) : human_seconds(seconds);
  };
  return fmt::format("a step takes {}: ranks compute for {} of it on average", words(time.seconds),
                     words(sum / static_cast<double>(time.computes.size())));
}

void record_prediction(RunRecord& run, const PlanRequest& request) {
  const PredictedCpuStep predicted = predict_cpu_step(request);
  if (!predicted) return run.log.debug("the time of a step is not predicted: {}", predicted.why_not);
  run.log.result("predicted by {}: {}", predicted.origin, in_words(predicted.time));
  run.recorder->numbers("forecast", "step_time", {"rank"},
                        std::vector<double>(predicted.time.computes.size(), predicted.time.seconds), "s",
                        "predicted time of a step");
  run.recorder->numbers("forecast", "compute_time", {"rank"}, predicted.time.computes, "s",
                        "predicted time of a step in which the rank computes");
}

}  // namespace chorale::train
