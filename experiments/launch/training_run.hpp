// The training run of a launch: its options, which stay the same for all starts, and the command of one start.
//
//   train --config RUN/train.toml --layout dp3.z2 --run-dir RUN --save-dir RUN/checkpoints --load RUN/checkpoints
//
// train.toml has all options that the user gave in any way, except those that name a part of the layout. An option that has
// no effect on the layout of a start is left out of that start.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "experiments/common/command.hpp"
#include "src/base/child_program.hpp"

namespace chorale::launch {

class TrainingRun {
 public:
  // `words`: "train --preset tiny …". Throws a usage error if they are no training run that can be started again, or if its
  // options are wrong for `ranks` ranks.
  TrainingRun(const std::vector<std::string>& words, std::int64_t ranks);

  const Options& options() const { return declared_->options; }
  std::int64_t steps() const;
  bool is_exact() const { return options().option("numerics").text == "exact"; }
  // The folder of the sets of all starts.
  std::filesystem::path save_dir(const std::filesystem::path& folder) const;
  std::string config_on(const std::string& layout) const;
  // Writes RUN/train.toml, and returns the words of the start.
  std::vector<std::string> command_on(const std::string& layout, const std::filesystem::path& folder,
                                      std::int64_t snapshot_interval) const;

 private:
  std::unique_ptr<DeclaredCommand> declared_;
  const std::string executable_ = own_executable();
};

}  // namespace chorale::launch
