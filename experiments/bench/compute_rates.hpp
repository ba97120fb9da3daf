// How fast one core computes a training step, for predictions of its time (parallel/forecast/step.hpp). All ranks train
// small models at the same time, each alone, so every core is as busy as in a run, but no rank waits for another.
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

// Collective: every rank returns the mean of all ranks.
ComputeRates measure_compute(DType dtype, const Session& session);

struct TimedWork {
  Amounts work{};
  double seconds = 0;
};
// The seconds per unit of each kind of work that explain these times best. None is negative; the fit minimizes the squares
// of the relative errors.
Amounts fit_work(const std::vector<TimedWork>& rows);

}  // namespace chorale::bench
