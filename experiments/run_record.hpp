// Shared by all runs: facts about the ranks, gathered from all of them, and a run folder. Its record starts with the facts
// of the run, its configuration and its ranks.
#pragma once
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "experiments/command.hpp"
#include "src/base/log.hpp"
#include "src/record/recorder.hpp"

namespace chorale {

struct RankFacts {
  std::string host;
  std::string kernel;     // equal on ranks that share a machine's cores, even if their host names differ
  std::vector<int> cpus;  // the cores that the launcher allows it
  std::int64_t cpu = 0;   // the core it ran on when asked
  std::int64_t pid = 0;
  std::int64_t local_rank = 0;  // index among the ranks of its host
  std::int64_t threads = 1;     // its share of its cores, in threads
  bool oversubscribed = false;  // it shares its cores with more ranks than there are cores
  double clock_offset = 0;      // seconds; its clock + clock_offset = rank 0's clock
};

// Collective; rank 0 gets the facts of all ranks, the others an empty list.
std::vector<RankFacts> gather_rank_facts(const mpi::Runtime& runtime, const Clock& clock);

// Collective; all ranks get rank 0's number of threads.
int threads_of_a_rank(const mpi::Runtime& runtime, const std::vector<RankFacts>& ranks);

struct RunRecord {
  std::filesystem::path folder;
  Log log;                             // on every rank, into log/rank-<r>.log
  std::unique_ptr<Recorder> recorder;  // on rank 0
};

// On rank 0: opens a record in the existing `folder` and writes the facts of the run, its configuration and its ranks. With
// `takes_over` it replaces a record whose writer died.
std::unique_ptr<Recorder> open_record(const std::filesystem::path& folder, const Session& session,
                                      const std::vector<RankFacts>& ranks, bool takes_over = false);

// Collective. Rank 0 makes a folder below `parent`, in a suite with the run's name, and opens the record in it.
RunRecord open_run_record(const std::filesystem::path& parent, const Session& session, const std::vector<RankFacts>& ranks);

}  // namespace chorale
