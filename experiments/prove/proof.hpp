// The outcome of a case, and the tables that record it. A finished case is recorded immediately, so if the run is killed,
// its finished cases are kept.
//
//   /cases      a row per case, written at the start; its verdict is "not compared" until the case is finished
//   /proofs     a row per finished case
//   /prove      a row per step of a finished case
#pragma once
#include <vector>

#include "experiments/prove/cases.hpp"
#include "experiments/prove/history.hpp"
#include "src/base/text_table.hpp"
#include "src/record/recorder.hpp"

namespace chorale::prove {

struct Proof {
  enum class Outcome : std::uint8_t { equal, differs, failed };

  Case row;
  History history;
  std::int64_t number = 0;  // row of /cases
  int failed_on = 0;        // the world rank on which the case failed first
  std::optional<Difference> difference;

  Outcome outcome() const;
  std::string verdict() const;  // one line: "DIFFERS at step 3: …"
};

TextTable table_of(const std::vector<Proof>& proofs);

struct ProofRow {
  std::int64_t case_number = 0;
  std::uint8_t outcome = 0;
  std::int64_t steps = 0, differs_at = 0, differing = 0;
  double time = 0;
  static auto columns() {
    return std::tuple{column("case", &ProofRow::case_number, "1", "row of /cases"),
                      column("outcome", &ProofRow::outcome, "", "outcome of the case", {"equal", "differs", "failed"}),
                      column("steps", &ProofRow::steps, "1", "number of completed steps"),
                      column("differs_at", &ProofRow::differs_at, "1", "first step that differs; 0: none"),
                      column("differing", &ProofRow::differing, "1", "number of tensors that differ at that step"),
                      column("time", &ProofRow::time, "s", "duration of the steps, including the hashes of their tensors")};
  }
};

struct StepRow {
  std::int64_t case_number = 0, step = 0;
  std::uint8_t equal = 0;
  double loss = 0, gradient_norm = 0;
  static auto columns() {
    return std::tuple{
        column("case", &StepRow::case_number, "1", "row of /cases"),
        column("step", &StepRow::step, "1", "training step, from 1"),
        column("equal", &StepRow::equal, "", "whether all results up to this step equal those of one rank", {"no", "yes"}),
        column("loss", &StepRow::loss, "1", "mean cross entropy of the batch, nats per token"),
        column("grad_norm", &StepRow::gradient_norm, "1", "norm of the gradient before clipping")};
  }
};

class ProofRecords {
 public:
  ProofRecords(Recorder& recorder, const std::vector<Case>& cases);
  void add(const Proof& proof);  // buffered until flush()
  void flush();
  void finish(const std::string& status);

 private:
  void write_verdicts();

  Recorder& recorder_;
  std::vector<std::string> verdicts_;  // the verdicts of all cases
  Table &proofs_, &steps_;
};

}  // namespace chorale::prove
