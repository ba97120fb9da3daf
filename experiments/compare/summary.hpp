// The record of a suite: every finished run below /runs, and /summary with one row per run. Rows are read from the runs' own
// records, so runs that finished before a stop count as well. The row of a run that has not run yet has NaN and the status
// "waiting".
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "experiments/compare/suite.hpp"
#include "src/record/recorder.hpp"

namespace chorale::compare {

struct Turn {  // one repetition of one run
  const SuiteRun* run = nullptr;
  std::int64_t repetition = 1;
  int ranks = 1;
  std::string id() const;  // "dp4-shm-r1": the name of its folder and of its group
};

class Summary {
 public:
  // `values[t][v]`: the value of the v-th varied setting in turn t.
  Summary(Recorder& recorder, const Suite& suite, const std::vector<Turn>& turns,
          const std::vector<std::vector<std::string>>& values);
  void finished(std::size_t turn, const std::filesystem::path& record);  // attaches the record, and fills the row
  void failed(std::size_t turn, const std::string& why);
  void keep();  // writes /summary to the record and flushes it

  std::vector<std::string> troubles() const;  // "tp8-r1: why it has no result"

 private:
  Recorder& recorder_;
  const std::vector<Turn>& turns_;
  std::int64_t warm_up_;
  std::vector<std::string> status_;        // waiting, ok, or why it has no result
  std::vector<std::vector<double>> seen_;  // by metric, then by turn
};

}  // namespace chorale::compare
