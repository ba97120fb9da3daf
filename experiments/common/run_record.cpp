#include "experiments/common/run_record.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "collectives/backends/backends.hpp"
#include "collectives/choice/tuning.hpp"
#include "src/base/built.hpp"
#include "src/base/host.hpp"
#include "src/base/text.hpp"
#include "src/record/h5.hpp"
#include "src/record/run_folder.hpp"

namespace chorale {
namespace {

// Sets local_rank, threads and oversubscribed of each rank. Ranks of one host share cores if their sets of allowed cores
// overlap. The cores of a set are then divided among the ranks that share it.
void share_cores(std::vector<RankFacts>& ranks) {
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const std::vector<int>& cpus = ranks[r].cpus;
    int sharers = 0;
    for (std::size_t other = 0; other < ranks.size(); ++other) {
      if (ranks[other].host != ranks[r].host) continue;
      ranks[r].local_rank += other < r;
      const std::vector<int>& theirs = ranks[other].cpus;
      sharers += std::find_first_of(cpus.begin(), cpus.end(), theirs.begin(), theirs.end()) != cpus.end();
    }
    ranks[r].threads = threads_per_rank(static_cast<int>(cpus.size()), sharers);
    ranks[r].oversubscribed = sharers > static_cast<int>(cpus.size());
  }
}

template <class Value>
std::vector<Value> column_of(const std::vector<RankFacts>& ranks, Value RankFacts::*member) {
  std::vector<Value> values;
  for (const RankFacts& rank : ranks) values.push_back(rank.*member);
  return values;
}

Facts facts_of(const Session& session, const std::vector<RankFacts>& ranks, const std::string& run_id) {
  const std::vector<std::string> all_hosts = column_of(ranks, &RankFacts::host);
  const std::set<std::string> hosts(all_hosts.begin(), all_hosts.end());
  Facts facts{{"run_id", run_id},
              {"user", user_name()},
              {"launchdate", iso_time(session.clock.wall_seconds())},
              {"cmdline", session.command_line},
              {"hostname", host_name()},
              {"hostlist", join({hosts.begin(), hosts.end()}, ",")},
              {"topology", topology_of(ranks).text()},
              {"machine", machine_signature()},
              {"chorale_version", version},
              {"hdf5_version", h5::version()}};
  for (const char* fact : {"git_commit", "git_dirty", "compiler", "cxxflags"}) facts.emplace_back(fact, built(fact));
  for (const Backend& backend : all_backends())
    // UCX is not started here, because starting it crashes if memory is short, and most runs do not use it.
    if (const Availability found = backend.library ? Availability{true, backend.library()} : probe(backend); found.works)
      facts.emplace_back(fmt::format("backend_{}", backend.name), found.detail);
  return facts;
}

void write_ranks(Recorder& recorder, const std::vector<RankFacts>& ranks) {
  recorder.number("jobsize", static_cast<std::int64_t>(ranks.size()));
  recorder.dimension({.name = "rank", .size = static_cast<std::int64_t>(ranks.size())});
  recorder.texts("ranks", "host", "rank", column_of(ranks, &RankFacts::host));
  std::vector<std::string> cpusets, sockets;
  for (const RankFacts& rank : ranks) {
    cpusets.push_back(cpu_ranges(rank.cpus));
    sockets.push_back(cpu_ranges(rank.sockets));
  }
  recorder.numbers("ranks", "host_number", {"rank"}, column_of(ranks, &RankFacts::host_number), "1",
                   "number of its host; ranks with equal numbers can map each other's memory");
  recorder.texts("ranks", "cpuset", "rank", cpusets);
  recorder.texts("ranks", "socket", "rank", sockets);
  recorder.numbers("ranks", "cpu", {"rank"}, column_of(ranks, &RankFacts::cpu), "1",
                   "core on which the rank ran at the start");
  recorder.numbers("ranks", "local_rank", {"rank"}, column_of(ranks, &RankFacts::local_rank), "1",
                   "index among the ranks of its host");
  recorder.numbers("ranks", "threads", {"rank"}, column_of(ranks, &RankFacts::threads), "1",
                   "threads of the rank: its share of the cores it may use");
  recorder.numbers("ranks", "pid", {"rank"}, column_of(ranks, &RankFacts::pid), "1", "process id");
  recorder.numbers("ranks", "clock_offset", {"rank"}, column_of(ranks, &RankFacts::clock_offset), "s",
                   "the rank's clock + clock_offset = rank 0's clock");
}

}  // namespace

std::vector<RankFacts> gather_rank_facts(const mpi::Runtime& runtime, const Clock& clock) {
  const double offset = mpi::clock_offset(runtime.world(), clock);
  const Topology topology = topology_of(runtime);
  const nlohmann::json mine{{"host", host_name()},
                            {"host_number", topology.host_of[static_cast<std::size_t>(runtime.rank())]},
                            {"kernel", kernel_id()},
                            {"cpus", allowed_cpus()},
                            {"sockets", sockets_of(allowed_cpus())},
                            {"cpu", current_cpu()},
                            {"pid", getpid()},
                            {"offset", offset}};
  std::vector<RankFacts> ranks;
  for (const std::string& text : mpi::gather(runtime.world(), mine.dump())) {
    const auto theirs = nlohmann::json::parse(text);
    ranks.push_back({.host = theirs["host"],
                     .host_number = theirs["host_number"],
                     .kernel = theirs["kernel"],
                     .cpus = theirs["cpus"],
                     .sockets = theirs["sockets"],
                     .cpu = theirs["cpu"],
                     .pid = theirs["pid"],
                     .clock_offset = theirs["offset"]});
  }
  for (RankFacts& rank : ranks)
    if (rank.kernel == ranks[0].kernel) rank.clock_offset = 0;  // both use one clock; the measured offset is noise
  share_cores(ranks);
  return ranks;
}

Topology topology_of(const std::vector<RankFacts>& ranks) {
  Topology topology;
  for (const RankFacts& rank : ranks) {
    topology.host_of.push_back(static_cast<int>(rank.host_number));
    if (rank.host_number == topology.hosts())
      topology.names.push_back(rank.host);  // hosts are numbered in the order of their first ranks
  }
  return topology;
}

int threads_of_a_rank(const mpi::Runtime& runtime, const std::vector<RankFacts>& ranks) {
  return std::stoi(mpi::broadcast(runtime.world(), ranks.empty() ? "" : std::to_string(ranks[0].threads)));
}

std::unique_ptr<Recorder> open_record(const std::filesystem::path& folder, const Session& session,
                                      const std::vector<RankFacts>& ranks, bool takes_over) {
  auto recorder =
      std::make_unique<Recorder>(folder, facts_of(session, ranks, folder.filename().string()), session.clock, takes_over);
  write_ranks(*recorder, ranks);
  recorder->text("config", "toml", session.options.toml());
  recorder->text("config", "origins", session.options.origins());
  return recorder;
}

void keep_reason(RunRecord& run, const std::exception& error) {
  if (run.recorder) run.recorder->text("/", "failure", error.what());
}

RunRecord open_run_record(const std::filesystem::path& parent, const Session& session, const std::vector<RankFacts>& ranks) {
  const mpi::Runtime& runtime = *session.runtime;
  const std::string command = session.options.command().substr(session.options.command().find(' ') + 1);
  std::filesystem::path folder;
  if (runtime.rank() == 0)
    folder = session.run_name.empty() ? make_run_folder(parent, command, session.clock)
                                      : make_run_folder_at(parent / session.run_name);
  folder = mpi::broadcast(runtime.world(), folder.string());
  if (Flight* const flight = runtime.flight())
    flight->record_in(std::filesystem::absolute(folder).lexically_normal().string());
  RunRecord run{folder, Log({.rank = runtime.rank(), .level = session.log_level, .folder = folder / "log"}), nullptr};
  run.log.debug("{} on rank {} of {}, process {}", session.command_line, runtime.rank(), runtime.size(), getpid());
  if (runtime.rank() != 0) return run;
  for (const std::string& line : session.options.notes()) run.log.info("{}", line);

  write_file(folder / "config.toml", session.options.toml());
  run.recorder = open_record(folder, session, ranks);
  run.recorder->flush();
  return run;
}

}  // namespace chorale
