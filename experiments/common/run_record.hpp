// Functions for all commands that record a run. These functions gather facts from every rank, and make the run's folder. The
// record in this folder begins with facts about the run, its configuration and its ranks.
#pragma once
#include <exception>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "experiments/common/command.hpp"
#include "src/base/log.hpp"
#include "src/base/topology.hpp"
#include "src/record/recorder.hpp"

namespace chorale {

struct RankFacts {
  std::string host;
  std::int64_t host_number = 0;  // index of the host in the topology, because host names can be equal
  std::string kernel;            // equal on ranks that share a machine's cores, even if their host names differ
  std::vector<int> cpus;         // the cores on which the launcher lets the rank run
  std::vector<int> sockets;      // the sockets of these cores; empty if unknown
  std::int64_t cpu = 0;          // the core on which the rank ran when the facts were gathered
  std::int64_t pid = 0;
  std::int64_t local_rank = 0;  // index of the rank among the ranks of its host
  std::int64_t threads = 1;     // number of threads for the rank: the rank's share of `cpus`
  bool oversubscribed = false;  // more ranks than cores share `cpus`
  double clock_offset = 0;      // seconds; the rank's clock + clock_offset = rank 0's clock
};

// Collective. Rank 0 gets the facts of all ranks; the other ranks get an empty list.
std::vector<RankFacts> gather_rank_facts(const mpi::Runtime& runtime, const Clock& clock);

Topology topology_of(const std::vector<RankFacts>& ranks);

// Collective. Returns rank 0's number of threads on all ranks, so that all ranks use the same number.
int threads_of_a_rank(const mpi::Runtime& runtime, const std::vector<RankFacts>& ranks);

struct RunRecord {
  std::filesystem::path folder;
  Log log;                             // on every rank; writes log/rank-<r>.log
  std::unique_ptr<Recorder> recorder;  // on rank 0
};

// Writes into the record why the run failed. Reports show this reason first.
void keep_reason(RunRecord& run, const std::exception& error);

// The string attributes of a record's root. `topology`: the hosts' ranks; "" if they change during the run.
Facts facts_of(const Session& session, const std::string& run_id, const std::vector<std::string>& hosts,
               const std::string& topology = "");

// Called on rank 0 only. Opens a record in the existing `folder`, and writes the facts of the run, its configuration and its
// ranks. If `takes_over` is set, the new record can replace a record that a different process began and did not finish.
std::unique_ptr<Recorder> open_record(const std::filesystem::path& folder, const Session& session,
                                      const std::vector<RankFacts>& ranks, bool takes_over = false);

// Collective. Rank 0 makes a folder below `parent` and opens the record in this folder. In a suite the folder has the run's
// name.
RunRecord open_run_record(const std::filesystem::path& parent, const Session& session, const std::vector<RankFacts>& ranks);

}  // namespace chorale
