// The record of a launch. It looks like the record of one training run: /train has the steps of all starts, one after the
// other. /events has a row for each start, and for the end.
//
//   runs/<id>-launch-…/   run.h5  metrics.jsonl   train.toml          options of all starts, except those of the layout
//                         checkpoints/            the sets of all starts, unless --save-dir names another folder
//                         <id>-train-…/           one run folder per start
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "experiments/common/command.hpp"
#include "experiments/common/launch_event.hpp"
#include "experiments/train/records.hpp"
#include "src/record/recorder.hpp"

namespace chorale::launch {

class LaunchRecord {
 public:
  // Creates the folder below `parent`.
  LaunchRecord(const std::filesystem::path& parent, const Session& session, const std::vector<std::string>& hosts);

  const std::filesystem::path& folder() const { return folder_; }
  // Called once. `toml`: the options of the training run.
  void describe(const std::string& layout, std::int64_t ranks, std::int64_t steps, const std::string& toml);
  void step(const train::TrainRow& row);
  void evaluation(const train::EvalRow& row);
  void event(const LaunchEvent& row);
  void finish(const std::string& status);

 private:
  std::filesystem::path folder_;
  Recorder recorder_;
  Table &train_, &eval_, &events_;
};

}  // namespace chorale::launch
