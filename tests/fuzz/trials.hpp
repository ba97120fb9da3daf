// Tries a target on its good inputs and on mutations of them. A child process does the work, so that a crash, an endless
// loop or unbounded memory is only one more finding, and later trials still run.
//
//   parent   fork ─────── watches the number of the trial ──── the child died in trial 17: a finding; fork again from 18
//   child        └─ trial 0, 1, 2, …  each counts up a number in shared memory
//
// Cost: a fork for each batch of trials and for each finding, plus the target's own time.
#pragma once
#include <cstdint>

#include "tests/fuzz/target.hpp"

namespace chorale::test {

struct Finding {
  std::int64_t trial = 0;
  std::string how;    // "signal 11", "std::bad_alloc", "no end after 20 s of computing"
  std::string input;  // the bytes
};

struct Trials {
  std::vector<Finding> findings;
  std::int64_t tried = 0;
  std::int64_t good = 0, good_accepted = 0;  // unchanged inputs
  std::int64_t accepted = 0;                 // mutations
};

struct TrialLimits {
  double seconds = 20;                         // of computing, for one input
  std::int64_t bytes = std::int64_t{1} << 30;  // of memory, in addition to what the process already has
  std::size_t findings = 10;                   // stops after this many
};

// `inputs`: the good inputs. Equal seeds give equal mutations.
Trials try_mutations(const Target& target, const std::vector<std::string>& inputs, std::int64_t count, std::uint64_t seed,
                     const TrialLimits& limits = {});

}  // namespace chorale::test
