#include "experiments/bench/compute_rates.hpp"

#include <algorithm>
#include <cmath>
#include <ctime>

#include "experiments/bench/made_up_tokens.hpp"
#include "experiments/common/statistics.hpp"
#include "parallel/plan/plan.hpp"
#include "parallel/step/training.hpp"
#include "src/base/mpi.hpp"
#include "src/memory/pool.hpp"

namespace chorale::bench {
namespace {

constexpr int steps = 3;  // number of timed steps; an untimed step before them prepares the matrix products

// Reads the CPU time of this process. The measured step time thus excludes the time of other ranks on the same core.
class CoreClock final : public Clock {
 public:
  double seconds() const override {
    timespec time{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
  }
  double wall_seconds() const override { return seconds(); }
  void sleep(double) override {}
};

// Returns models that each spend much of a step on one kind of work. Models with wide layers spend much time on matrix
// products. Models with a long sequence spend it on attention, and models with narrow layers spend it on elementwise
// kernels.
std::vector<TrainingOptions> models(DType dtype) {
  struct Size {
    std::int64_t layers, width, heads, sequence, batch;
  };
  std::vector<TrainingOptions> all;
  for (const Size& s :
       {Size{2, 384, 8, 256, 1}, Size{1, 768, 12, 256, 1}, Size{1, 192, 4, 1024, 1}, Size{2, 128, 4, 128, 4}}) {
    TrainingOptions& o = all.emplace_back();
    o.shape = {.layers = s.layers, .heads = s.heads, .groups = s.heads, .width = s.width, .ffn = 4 * s.width};
    o.shape.sequence = s.sequence;
    o.compute = dtype;
    o.batch = {.global = s.batch, .micro = s.batch};
  }
  return all;
}

struct Phases {
  double passes = 0, update = 0;  // seconds
};

// Returns the median times of this rank's steps.
Phases measure(const TrainingOptions& options) {
  CoreClock clock;
  HostMemory host;
  Pool memory(host);  // as in a run, tensors reuse the same pages
  Training training(options, memory, clock);
  const ReadSamples read = made_up_tokens(options.shape.vocabulary);
  training.step(read);
  std::vector<double> passes, updates;
  for (int step = 0; step < steps; ++step) {
    const StepResult result = training.step(read);
    passes.push_back(result.forward + result.backward);
    updates.push_back(result.optimizer);
  }
  return {median_of(passes), median_of(updates)};
}

double mean_over_ranks(double seconds, const mpi::Runtime& runtime) {
  double sum = 0;
  const auto all = mpi::all_gather(runtime.world(), static_cast<std::int64_t>(seconds * 1e9));
  for (const std::int64_t one : all) sum += static_cast<double>(one) / 1e9;
  return sum / static_cast<double>(all.size());
}

}  // namespace

Amounts fit_work(const std::vector<TimedWork>& rows) {
  constexpr int rounds = 20'000;  // number of rounds of coordinate descent; a round takes about a microsecond
  Amounts each{};
  for (int round = 0; round < rounds; ++round)
    for (std::size_t kind = 0; kind < kinds_of_work; ++kind) {
      double slope = 0, curve = 0;
      for (const TimedWork& row : rows) {
        double predicted = 0;
        for (std::size_t k = 0; k < kinds_of_work; ++k) predicted += row.work[k] * each[k] / row.seconds;
        const double own = row.work[kind] / row.seconds;
        slope += own * (1 - predicted);
        curve += own * own;
      }
      if (curve > 0) each[kind] = std::max(0.0, each[kind] + slope / curve);
    }
  return each;
}

ComputeRates measure_compute(DType dtype, const Session& session) {
  const mpi::Runtime& runtime = *session.runtime;
  std::vector<TimedWork> rows;
  for (const TrainingOptions& options : models(dtype)) {
    mpi::sleep_until_all(runtime.world(), session.clock);
    const Phases mine = measure(options);
    const Amounts work = script_of({.options = options}, 0).total();
    TimedWork passes{work, mean_over_ranks(mine.passes, runtime)};
    TimedWork update{{}, mean_over_ranks(mine.update, runtime)};
    std::swap(passes.work[static_cast<std::size_t>(Work::update)], update.work[static_cast<std::size_t>(Work::update)]);
    rows.push_back(passes);
    rows.push_back(update);
  }
  const Amounts each = fit_work(rows);
  double error = 0;
  for (const TimedWork& row : rows) {
    double predicted = 0;
    for (std::size_t kind = 0; kind < kinds_of_work; ++kind) predicted += row.work[kind] * each[kind];
    error = std::max(error, std::abs(std::log(predicted / row.seconds)));
  }
  const auto rate = [&](Work work) { return 1 / std::max(each[static_cast<std::size_t>(work)], 1e-15); };
  return {.type = name_of(dtype),
          .ranks = runtime.size(),
          .product = rate(Work::product),
          .attention = rate(Work::attention),
          .elements = rate(Work::elements),
          .update = rate(Work::update),
          .error = error};
}

}  // namespace chorale::bench
