// What every run has in common: who took part (gathered from all ranks), and a folder with a record that opens with the
// facts of the run, its configuration, and its ranks.
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
  std::string kernel;     // the same for ranks that share a machine's cores, whatever their hosts are called
  std::vector<int> cpus;  // the cores the launcher left it
  std::int64_t cpu = 0;   // where it was when asked
  std::int64_t pid = 0;
  std::int64_t local_rank = 0;  // among the ranks of its host
  std::int64_t threads = 1;     // its share of its cores
  bool oversubscribed = false;  // it shares its cores with more ranks than there are cores
  double clock_offset = 0;      // seconds to add to its clock to read rank 0's
};

// Every rank calls it; rank 0 gets all of them.
std::vector<RankFacts> gather_rank_facts(const mpi::Runtime& runtime, const Clock& clock);

// Every rank gets it: rank 0's share of its cores.
int threads_of_a_rank(const mpi::Runtime& runtime, const std::vector<RankFacts>& ranks);

struct RunRecord {
  std::filesystem::path folder;
  Log log;                             // on every rank, into log/rank-<r>.log
  std::unique_ptr<Recorder> recorder;  // on rank 0
};

// On rank 0: a record in `folder`, which is there, opened with the facts of the run, its configuration and its ranks; or in
// the place of one whose writer died.
std::unique_ptr<Recorder> open_record(const std::filesystem::path& folder, const Session& session,
                                      const std::vector<RankFacts>& ranks, bool takes_over = false);

// Every rank calls it. Rank 0 makes the folder below `parent`, or in a suite the one that has the run's name, and opens the
// record in it.
RunRecord open_run_record(const std::filesystem::path& parent, const Session& session, const std::vector<RankFacts>& ranks);

}  // namespace chorale
