// The record of a suite has every finished run below /runs, and /summary with one row per turn (one repetition of one run).
// The values of a row come from the record in the run's folder, so runs that an earlier launch finished are included. Until
// a turn has run, its row has NaN values and the status "waiting".
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "experiments/compare/suite.hpp"
#include "src/record/recorder.hpp"

namespace chorale::compare {

struct Repetition {  // one repetition of one run
  const SuiteRun* run = nullptr;
  std::int64_t repetition = 1;
  int ranks = 1;
  std::int64_t round = 1;  // a budget excludes complete rounds: rounds.hpp
  std::string id() const;  // "dp4-shm-r1": the name of the run's folder, and of the run's group below /runs
};

class SuiteSummary {
 public:
  // `values[t][v]`: the value of the v-th varied setting in turn t.
  SuiteSummary(Recorder& recorder, const Suite& suite, const std::vector<Repetition>& turns,
               const std::vector<std::vector<std::string>>& values);
  void finished(std::size_t turn, const std::filesystem::path& record);  // attaches the record, and fills the row
  void failed(std::size_t turn, const std::string& why);
  void keep();  // writes /summary to the record, and flushes the record

  std::vector<std::string> troubles() const;  // one line per turn that failed: "tp8-r1: why it has no result"

 private:
  Recorder& recorder_;
  const std::vector<Repetition>& turns_;
  std::int64_t warm_up_;
  bool trains_;                            // whether any run trains; benchmarks have no metric
  std::vector<std::string> status_;        // for each turn: "waiting", "ok", or the reason why it has no result
  std::vector<std::vector<double>> seen_;  // values, indexed by metric and turn
  std::vector<std::int64_t> ranks_;        // indexed by turn
};

}  // namespace chorale::compare
