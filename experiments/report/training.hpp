// Facts about a training run, one number each; `absent` if its record lacks them.
#pragma once
#include "experiments/report/chart.hpp"
#include "experiments/report/record_set.hpp"

namespace chorale::report {

double held_out_loss(const Run& run);   // of the last evaluation
double largest_peak(const Run& run);    // bytes on the rank with the most
double bytes_per_step(const Run& run);  // sent by all ranks, evaluations included
double bubble_share(const Run& run);    // share of the time of a step, over all ranks

// By rank and category: the peak bytes, and the planned bytes (empty without a plan).
struct MemoryUse {
  std::vector<std::string> categories;
  std::vector<std::vector<double>> peak, planned;
};
MemoryUse memory_of(const Run& run);

// By rank and part of a step. The parts do not overlap in time.
struct StepParts {
  enum Part : std::size_t { forward, backward, optimizer, exposed, bubble, data };
  static const std::vector<std::string>& names();
  std::vector<std::vector<double>> seconds;
};
StepParts step_parts(const Run& run);

// Splits row-major values into rows of `columns` values.
std::vector<std::vector<double>> in_rows(const std::vector<double>& values, std::size_t columns);

}  // namespace chorale::report
