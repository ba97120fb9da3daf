// What became of a case, and the record of it. A case is written down as soon as it is over, so a run that is killed keeps
// all that it proved.
//
//   /cases      what is to be proved, from the start; its verdicts, at the end
//   /proofs     a row for each case that is over
//   /prove      a row for each of its steps
#pragma once
#include <vector>

#include "experiments/prove/cases.hpp"
#include "experiments/prove/history.hpp"
#include "src/record/recorder.hpp"

namespace chorale::prove {

struct Proof {
  enum class Outcome : std::uint8_t { equal, differs, failed };

  Case row;
  History history;
  int failed_on = 0;  // rank of the world
  std::optional<Difference> difference;

  Outcome outcome() const;
  std::string verdict() const;  // a line: "DIFFERS at step 3: …"
};

struct ProofRow {
  std::int64_t case_number = 0;
  std::uint8_t outcome = 0;
  std::int64_t steps = 0, differs_at = 0, differing = 0;
  double time = 0;
  static auto columns() {
    return std::tuple{column("case", &ProofRow::case_number, "1", "row of /cases"),
                      column("outcome", &ProofRow::outcome, "", "what came of it", {"equal", "differs", "failed"}),
                      column("steps", &ProofRow::steps, "1", "that it trained"),
                      column("differs_at", &ProofRow::differs_at, "1", "the first step that differs; 0: none"),
                      column("differing", &ProofRow::differing, "1", "tensors that differ at that step"),
                      column("time", &ProofRow::time, "s", "of its steps and their hashes")};
  }
};

struct StepRow {
  std::int64_t case_number = 0, step = 0;
  std::uint8_t equal = 0;
  double loss = 0, gradient_norm = 0;
  static auto columns() {
    return std::tuple{column("case", &StepRow::case_number, "1", "row of /cases"),
                      column("step", &StepRow::step, "1", "training step, from 1"),
                      column("equal", &StepRow::equal, "", "whether all is as on one rank so far", {"no", "yes"}),
                      column("loss", &StepRow::loss, "1", "mean cross entropy of the batch, nats a token"),
                      column("grad_norm", &StepRow::gradient_norm, "1", "norm of the gradient before clipping")};
  }
};

class Records {
 public:
  Records(Recorder& recorder, const std::vector<Case>& cases);
  void add(std::int64_t case_number, const Proof& proof);  // buffered until the record is flushed
  void finish(const std::vector<Proof>& proofs);

 private:
  Recorder& recorder_;
  Table &proofs_, &steps_;
};

}  // namespace chorale::prove
