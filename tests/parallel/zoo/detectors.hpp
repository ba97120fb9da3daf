// Detectors of mistakes. A detector is an observation that can show a user that a run is wrong. Each detector compares a run
// on some layout with a one-rank run of the same model, or with the plan of a step.
//
//   loss curve           a step's loss differs by more than the noise between runs with different seeds
//   gradient norm        the first step's norm differs by more than 1 %
//   copies               copies of a tensor on several ranks are not bit-identical (parallel/state/fingerprint.hpp)
//   planned = measured   calls, bytes or memory of a step differ from the plan (parallel/plan/plan.hpp)
//   proof                any result differs from the one-rank run, in the comparison of `chorale prove`
#pragma once
#include "parallel/plan/plan.hpp"
#include "tests/parallel/zoo/mistake.hpp"

namespace chorale::zoo {

inline constexpr double loss_tolerance = 0.02, norm_tolerance = 0.01;

// The observations of one rank during a run.
struct Watched {
  test::Seen seen;
  RankPlan last_step;  // measured calls, bytes and memory
};

// Trains for `steps` steps, including steps that `make` runs. Models with experts are evaluated after the first step.
Watched watch(
    const TrainingOptions& options, Mesh mesh, Memory& memory, int steps, void (*make)(Run&) = [](Run&) {});

// The expected observations of a correct run on this rank.
struct Expected {
  const test::Seen& one_rank;
  RankPlan step;
  bool knows_routing, knows_memory;
};

struct Finding {
  std::string cell;     // the cell in a table, such as "step 2"; if it is empty, there is no alarm
  std::string details;  // text for the user
  double margin = 1;    // distance between the tolerance and the nearest deviation, divided by the tolerance
};

struct Detector {
  const char* name;
  Finding (*look)(const Watched& watched, const Expected& expected);
};
inline constexpr std::size_t proof = 4, how_many = 5;  // `proof` is the index of the last detector
extern const std::array<Detector, how_many> detectors;
using Findings = std::array<Finding, how_many>;

// The options of a run for this mistake, before the mistake is applied. On one rank, the complete batch is one micro-batch.
TrainingOptions options_of_one_rank(const Mistake& mistake);
TrainingOptions options_in(const Layout& layout, const Mistake& mistake);
// Trains on a layout for `steps` steps and applies all detectors to the run. `one_rank` must have trained for at least as
// many steps. The result of a detector is the finding of the first rank with an alarm.
Findings findings_in(const Layout& layout, const Mistake& mistake, bool mistaken, test::Seen one_rank, int steps);

// The maximum relative difference between two loss curves.
double loss_difference(const test::Seen& a, const test::Seen& b);

}  // namespace chorale::zoo
