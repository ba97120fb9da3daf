// Returns facts about a training run, from its record. A value is `absent` (NaN) if the record does not contain it.
#pragma once
#include "experiments/report/chart.hpp"
#include "experiments/report/record_set.hpp"

namespace chorale::report {

double held_out_loss(const RecordedRun& run);  // loss of the last evaluation, nats per token
double loss_floor(const RecordedRun& run);     // entropy of the synthetic language, nats per token
double largest_peak(const RecordedRun& run);   // the largest number of bytes that any rank held at one time
const RecordedRun& fullest_of(const std::vector<const RecordedRun*>& runs);  // the repetition with the largest memory peak
double bytes_per_step(const RecordedRun& run);    // bytes that all ranks send in a training step, without evaluations
double steps_of_warm_up(const RecordedRun& run);  // the number of steps that speeds exclude; absent without steps
double steady_median(const RecordedRun& run, const char* column);  // median of a column of /train, without the warm-up
double attention_imbalance(const RecordedRun& run);                // processor time along cp: maximum over ranks / mean
double dropped_share(const RecordedRun& run);  // median share of the expert choices that a step drops, after the warm-up
double step_seconds(const RecordedRun& run);   // median step time after the warm-up
double comm_share(const RecordedRun& run);     // median share of a step in which ranks waited for messages, after warm-up
double bubble_share(
    const RecordedRun& run);  // median share of a step in which ranks waited for other stages, after the warm-up
double predicted_step_time(const RecordedRun& run);  // in seconds, predicted from the machine file before the run

// Computes, after each step, the largest free block of a rank divided by the rank's free memory. Returns the minimum over
// all steps and ranks. Older records do not have this value.
double least_unfragmented(const RecordedRun& run);

// The bytes that each rank holds at its memory peak, in each category. Both measured and planned bytes are stored (planned
// bytes are empty without a plan). A rank's bytes add up to its peak. A simulated run has only planned bytes, by stage.
// Older records have only the peak of each category. Categories peak at different times, so their sum exceeds the rank's
// peak.
struct MemoryUse {
  std::vector<std::string> categories;
  std::vector<std::vector<double>> held, planned;
  std::vector<std::string> stages = {};  // names of the stages of a simulated run
  bool adds_up = true;                   // false in an older record
};
MemoryUse memory_of(const RecordedRun& run);

// The time in seconds of each part of a step, indexed by rank and part. The parts do not overlap in time. Together, the
// parts are as long as the median step. The share of a part is its mean over the steps after the warm-up. The last part is
// the time between the phases.
struct StepParts {
  enum Part : std::size_t { forward, backward, optimizer, exposed, bubble, data, rest };
  static const std::vector<std::string>& names();
  std::vector<std::vector<double>> seconds;
};
StepParts step_parts(const std::vector<const RecordedRun*>& runs);  // the mean of the shares over repetitions

// The labels of a dimension, with their underscores replaced by spaces.
std::vector<std::string> labels(const RecordGroup& group, const std::string& dimension);

// Splits row-major values into rows of `columns` values.
std::vector<std::vector<double>> in_rows(const std::vector<double>& values, std::size_t columns);

}  // namespace chorale::report
