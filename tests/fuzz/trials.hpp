// Tries a fuzz target on its valid inputs and on mutations of these inputs. The trials run in a child process. So a crash,
// an endless loop or unbounded memory use is recorded as a finding, and later trials still run.
//
//   parent   fork ─────── watches the trial number ──── child died in trial 17: records a finding, forks again from 18
//   child        └─ trial 0, 1, 2, …  each trial increments a number in shared memory
//
// Cost: a fork for each batch of trials and for each finding, plus the target's own time.
#pragma once
#include <cstdint>

#include "tests/fuzz/target.hpp"

namespace chorale::test {

struct Finding {
  std::int64_t trial = 0;
  std::string how;    // how the trial failed: "signal 11", "std::bad_alloc", "no end after 20 s of computing"
  std::string input;  // the bytes of the input
};

struct Trials {
  std::vector<Finding> findings;
  std::int64_t tried = 0;
  std::int64_t good = 0, good_accepted = 0;  // trials with unchanged inputs
  std::int64_t accepted = 0;                 // accepted mutations
};

struct TrialLimits {
  double seconds = 20;                         // CPU time limit for one input
  std::int64_t bytes = std::int64_t{1} << 30;  // limit on additional memory for one input
  std::size_t findings = 10;                   // stops after this number of findings
};

// `inputs` contains the target's valid inputs. Equal seeds give equal mutations.
Trials try_mutations(const Target& target, const std::vector<std::string>& inputs, std::int64_t count, std::uint64_t seed,
                     const TrialLimits& limits = {});

}  // namespace chorale::test
