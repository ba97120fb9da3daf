// Controls the snapshots of a run in the memory of its host (parallel/state/snapshot.hpp). `chorale launch` starts the
// keeper that holds the snapshots, and continues from them after a death.
//
//   --snapshot-interval N     a snapshot after every N steps
//
// For each snapshot, /snapshots records the bytes of rank 0's parts, and the time for which training waited.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "experiments/common/run_record.hpp"
#include "experiments/train/saving.hpp"
#include "parallel/state/snapshot.hpp"
#include "src/base/options.hpp"

namespace chorale::train {

class Keeping {
 public:
  void declare(Options& options);
  void check() const;  // throws a usage error if snapshots were asked for, but there is no keeper
  // Collective. Returns the newest undamaged snapshot that is not older than the newest checkpoint at `path` (which can be
  // empty); nullopt if there is none.
  std::optional<Checkpoint> newest(const std::filesystem::path& path, const Peers& peers, Log& log) const;
  // Collective. Allocates the memory. Throws a usage error if a host has too little memory for two snapshots.
  void begin(Session& session, Training& training);
  void stepped(Session& session, RunRecord& run, Training& training);  // takes a snapshot if it is due

 private:
  std::int64_t interval_ = 0;
  std::unique_ptr<Snapshots> snapshots_;
  std::string config_;  // every option of the run, as TOML
  Table* table_ = nullptr;
  std::int64_t memory_bytes_ = 0, sent_bytes_ = 0;
};

}  // namespace chorale::train
