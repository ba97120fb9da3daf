// Measures how fast one core computes a training step. Predictions of step times use the measured rates
// (parallel/prediction/cpu_step.hpp). All ranks train small models at the same time, without communication. Every core is
// thus as busy as in a training run, but no rank waits.
//
//   models that differ in width, length and batch   ──▶  core time of their steps ─┐
//   the work of these steps, from phantom tensors   ──────────────────────────────┴▶ flops and bytes per second, by kind
//
// The measurement takes a few seconds per element type.
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
// For each kind of work, fits the time in seconds per unit of work to the measured times. No fitted time is negative. The
// fit minimizes the sum of the squared relative errors.
Amounts fit_work(const std::vector<TimedWork>& rows);

}  // namespace chorale::bench
