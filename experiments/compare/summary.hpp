// What each run of a suite came to: a row of /summary, read from the run's own record, so that runs finished before a stop count as well.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "experiments/compare/suite.hpp"
#include "src/record/recorder.hpp"

namespace chorale {
class Reader;
}

namespace chorale::compare {

struct Turn {  // one repetition of one run
  const SuiteRun* run = nullptr;
  std::int64_t repetition = 1;
  int ranks = 1;
  std::string id() const;  // "dp4-shm-r1": its folder's name and its group's
};

struct Metric {
  const char* name;
  const char* units;
  const char* about;
  double (*of)(const Reader& record, std::int64_t warmup);  // NaN where the run has no such thing
};
const std::vector<Metric>& metrics();

class Summary {
 public:
  // `values[i][v]`: what turn i has for the v-th setting that the suite varies.
  Summary(Recorder& recorder, const Suite& suite, const std::vector<Turn>& turns,
          const std::vector<std::vector<std::string>>& values);
  void finished(std::size_t turn, const std::filesystem::path& record);  // adopts it, and keeps its row
  void failed(std::size_t turn, const std::string& why);
  void keep();  // into the record, as one publication

  bool done(std::size_t turn) const { return status_[turn] != "waiting"; }
  std::string table() const;     // a row for each run, medians over its repetitions
  std::string sentence() const;  // what it shows

 private:
  struct Row;
  std::vector<Row> rows() const;

  Recorder& recorder_;
  const Suite& suite_;
  const std::vector<Turn>& turns_;
  const std::vector<std::vector<std::string>>& values_;
  std::vector<std::string> status_;          // waiting, ok, or why not
  std::vector<std::vector<double>> seen_;    // by metric, then by turn
  std::vector<std::vector<double>> speeds_;  // by turn: tokens/s of every step that counts
};

}  // namespace chorale::compare
