// Controls when and how a run saves its checkpoints.
//
//   --save-interval N     one set of files every N steps, and one at the end
//   --save-dir DIR        the folder of the sets; by default the folder checkpoints/ of the run
//   --async-save          training continues while a set is written; costs a copy of the state in memory
//   --on-save-error       abort: the run ends if a set cannot be saved. continue: the run warns, keeps old sets and tries
//                         again after the next interval; only the last set of a run must succeed
//
// For each checkpoint (a set of files), /saves records how long training waited, and how long writing the checkpoint
// overlapped training.
#pragma once
#include <memory>
#include <string>

#include "experiments/common/run_record.hpp"
#include "parallel/state/background_save.hpp"
#include "parallel/step/training.hpp"
#include "src/base/options.hpp"

namespace chorale::train {

struct SaveRow {
  std::int64_t step = 0, bytes = 0;
  double exposed = 0, hidden = 0;
  static auto columns() {
    return std::tuple{column("step", &SaveRow::step, "1", "training step whose state was saved"),
                      column("bytes", &SaveRow::bytes, "byte", "bytes of the files of all ranks and of the manifest"),
                      column("exposed", &SaveRow::exposed, "s", "time that training waited for the save, on rank 0"),
                      column("hidden", &SaveRow::hidden, "s", "time in which it was written while training went on")};
  }
};

class Saving {
 public:
  void declare(Options& options);
  // Called before MPI starts. Throws a usage error if options contradict each other, or if there is no space for one set
  // of the model's state, in --save-dir or otherwise in `runs`. Returns a warning if there is no space for all sets that
  // exist at the same time, or "".
  std::string check(const std::filesystem::path& runs, const TrainingOptions& options, std::int64_t steps) const;

  bool due(std::int64_t step) const { return !none_ && interval_ > 0 && step % interval_ == 0; }
  bool any() const { return !none_; }
  bool is_written() const { return !pending_ || pending_->is_written(); }  // on this rank
  // Collective, like the functions below. A save that is still being written is finished first. `last`: no step follows.
  void save(Session& session, RunRecord& run, Training& training, bool last);
  void finish(Session& session, RunRecord& run);                 // finishes a save that is being written
  std::filesystem::path folder_for(const RunRecord& run) const;  // the folder of the sets
  std::int64_t newest_step() const { return newest_; }  // step of the newest set that this run has saved; −1: none

 private:
  template <class Do>
  bool carry_out(RunRecord& run, std::int64_t step, bool may_fail, Do&& stage);
  void saved(Session& session, RunRecord& run, const SavedSet& set, const SaveRow& times);

  std::int64_t interval_ = 0, newest_ = -1;
  bool none_ = false, in_background_ = false, said_not_shared_ = false;
  std::string on_error_ = "abort", folder_;
  std::unique_ptr<BackgroundSave> pending_;
  double copied_seconds_ = 0;  // time in seconds until the pending save continued in the background
  Table* table_ = nullptr;
};

}  // namespace chorale::train
