// What a training run says of itself in one number each; `absent` where its record does not say.
#pragma once
#include "experiments/report/chart.hpp"
#include "experiments/report/record_set.hpp"

namespace chorale::report {

double held_out_loss(const Run& run);   // of the last evaluation
double largest_peak(const Run& run);    // bytes, of the rank that needed most
double bytes_per_step(const Run& run);  // sent by all ranks, evaluations included
double bubble_share(const Run& run);    // of the time of a step, in the mean of the ranks

// Rank by category: the most that was held; what the plan says, or nothing.
struct MemoryUse {
  std::vector<std::string> categories;
  std::vector<std::vector<double>> peak, planned;
};
MemoryUse memory_of(const Run& run);

// Rank by part of a step. The parts follow each other in time.
struct StepParts {
  enum Part : std::size_t { forward, backward, optimizer, exposed, bubble, data };
  static const std::vector<std::string>& names();
  std::vector<std::vector<double>> seconds;
};
StepParts step_parts(const Run& run);

// Row-major values as rows of so many.
std::vector<std::vector<double>> in_rows(const std::vector<double>& values, std::size_t columns);

}  // namespace chorale::report
