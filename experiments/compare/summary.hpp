// The record of a suite: every finished run below /runs, and /summary with a row for each, read from the runs' own records,
// so that those finished before a stop count as well. A row that has not been run yet has NaN and the status "waiting".
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
  std::string id() const;  // "dp4-shm-r1": its folder's name and its group's
};

class Summary {
 public:
  // `values[t][v]`: what turn t has for the v-th setting that the suite varies.
  Summary(Recorder& recorder, const Suite& suite, const std::vector<Turn>& turns,
          const std::vector<std::vector<std::string>>& values);
  void finished(std::size_t turn, const std::filesystem::path& record);  // adopts it, and keeps its row
  void failed(std::size_t turn, const std::string& why);
  void keep();  // into the record, as one publication

  std::vector<std::string> troubles() const;  // "tp8-r1: why it came to nothing"

 private:
  Recorder& recorder_;
  const std::vector<Turn>& turns_;
  std::int64_t warm_up_;
  std::vector<std::string> status_;        // waiting, ok, or why not
  std::vector<std::vector<double>> seen_;  // by metric, then by turn
};

}  // namespace chorale::compare
