// Measures how fast one core computes a training step. Predictions of step times use these rates
// (parallel/forecast/step.hpp). All ranks train small models at the same time, without communication. So every core is as
// busy as in a run, but no rank waits.
//
//   models that differ in width, length and batch   ──▶  core time of their steps ─┐
//   the work of these steps, from phantom tensors   ──────────────────────────────┴▶ flops and bytes per second, by kind
//
// Takes some seconds per element type.
#pragma once
#include "experiments/common/command.hpp"
#include "parallel/mesh/script.hpp"
#include "src/base/machine_file.hpp"

namespace chorale::bench {

// Collective. Every rank returns the mean over all ranks.
ComputeRates measure_compute(DType dtype, const Session& session);

struct TimedWork {
  Amounts work{};
  double seconds = 0;
};
// Fits the seconds per unit of each kind of work to the measured times. No result is negative. The fit minimizes the squares
// of the relative errors.
Amounts fit_work(const std::vector<TimedWork>& rows);

}  // namespace chorale::bench
