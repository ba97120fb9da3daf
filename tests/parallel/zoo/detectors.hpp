// Detectors of mistakes: observations from which a user may learn that a run is wrong. Each compares a run on some layout
// with a one-rank run of the same model, samples and options, or with the plan of a step.
//
//   loss curve           a step's loss differs by more than the noise between runs with other seeds
//   gradient norm        the first step's norm differs by more than 1 %
//   copies               ranks that must hold the same bits do not (parallel/state/fingerprint.hpp)
//   planned = measured   calls, bytes or memory of a step differ from the plan (parallel/plan/plan.hpp)
//   proof                anything at all differs from one rank, as `chorale prove` compares it
#pragma once
#include "parallel/plan/plan.hpp"
#include "tests/parallel/zoo/mistake.hpp"

namespace chorale::zoo {

inline constexpr double loss_tolerance = 0.02, norm_tolerance = 0.01;

// The observations of one rank during a run.
struct Watched {
  test::Seen seen;
  RankPlan last_step;  // as measured
};

// Trains for this number of steps, including the steps made in `make`. Models with experts are evaluated after the first
// step.
Watched watch(
    const TrainingOptions& options, Mesh mesh, Memory& memory, int steps, void (*make)(Run&) = [](Run&) {});

// The observations that a correct run of this rank would give.
struct Expected {
  const test::Seen& one_rank;
  RankPlan step;
  bool knows_routing, knows_memory;
};

struct Finding {
  std::string cell;     // for a table: "step 2"; empty: no alarm
  std::string details;  // for a person
  double margin = 1;    // the distance from the tolerance to the nearest deviation, divided by the tolerance
};

struct Detector {
  const char* name;
  Finding (*look)(const Watched& watched, const Expected& expected);
};
inline constexpr std::size_t proof = 4, how_many = 5;  // proof: the index of the last one
extern const std::array<Detector, how_many> detectors;
using Findings = std::array<Finding, how_many>;

// The options of a run in the setting of this mistake. On one rank, the whole batch is one micro-batch.
TrainingOptions options_of_one_rank(const Mistake& mistake);
TrainingOptions options_in(const Layout& layout, const Mistake& mistake);
// Trains on a layout for this number of steps, and shows the run to all detectors. `one_rank` must have trained for at least
// as many steps. A detector's finding is that of the first rank with an alarm.
Findings findings_in(const Layout& layout, const Mistake& mistake, bool mistaken, test::Seen one_rank, int steps);

// The largest relative difference of two loss curves.
double loss_difference(const test::Seen& a, const test::Seen& b);

}  // namespace chorale::zoo
