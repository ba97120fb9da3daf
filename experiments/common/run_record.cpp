#include "experiments/common/run_record.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "collectives/backends/backends.hpp"
#include "experiments/common/each.hpp"
#include "experiments/common/gather_json.hpp"
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

Facts facts_of_ranks(const Session& session, const std::vector<RankFacts>& ranks, const std::string& run_id) {
  const std::vector<std::string> all_hosts = each(ranks, &RankFacts::host);
  const std::set<std::string> hosts(all_hosts.begin(), all_hosts.end());
  Facts facts = facts_of(session, run_id, {hosts.begin(), hosts.end()}, topology_of(ranks).text());
  for (const Backend& backend : all_backends())
    // UCX is not started here, because starting it crashes if memory is short, and most runs do not use it.
    if (const Availability found = backend.library ? Availability{true, backend.library()} : probe(backend); found.works)
      facts.emplace_back(fmt::format("backend_{}", backend.name), found.detail);
  return facts;
}

void write_ranks(Recorder& recorder, const std::vector<RankFacts>& ranks) {
  recorder.number("jobsize", static_cast<std::int64_t>(ranks.size()));
  recorder.dimension({.name = "rank", .size = static_cast<std::int64_t>(ranks.size())});
  const auto texts = [&](const char* name, auto of) { recorder.texts("ranks", name, "rank", each(ranks, of)); };
  const auto numbers = [&](const char* name, auto of, const char* units, const char* about) {
    recorder.numbers("ranks", name, {"rank"}, each(ranks, of), units, about);
  };
  texts("host", &RankFacts::host);
  numbers("host_number", &RankFacts::host_number, "1",
          "number of its host; ranks with equal numbers can map each other's memory");
  texts("cpuset", [](const RankFacts& rank) { return cpu_ranges(rank.cpus); });
  texts("socket", [](const RankFacts& rank) { return cpu_ranges(rank.sockets); });
  numbers("cpu", &RankFacts::cpu, "1", "core on which the rank ran at the start");
  numbers("local_rank", &RankFacts::local_rank, "1", "index among the ranks of its host");
  numbers("threads", &RankFacts::threads, "1", "threads of the rank: its share of the cores it may use");
  numbers("pid", &RankFacts::pid, "1", "process id");
  numbers("clock_offset", &RankFacts::clock_offset, "s", "the rank's clock + clock_offset = rank 0's clock");
}

}  // namespace

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RankFacts, host, host_number, kernel, cpus, sockets, cpu, pid, clock_offset)

std::vector<RankFacts> gather_rank_facts(const mpi::Runtime& runtime, const Clock& clock) {
  const double offset = mpi::clock_offset(runtime.world(), clock);
  const Topology topology = topology_of(runtime);
  const std::vector<int> cpus = allowed_cpus();
  std::vector<RankFacts> ranks =
      gather_json(runtime, RankFacts{.host = host_name(),
                                     .host_number = topology.host_of[static_cast<std::size_t>(runtime.rank())],
                                     .kernel = kernel_id(),
                                     .cpus = cpus,
                                     .sockets = sockets_of(cpus),
                                     .cpu = current_cpu(),
                                     .pid = getpid(),
                                     .clock_offset = offset});
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

Facts facts_of(const Session& session, const std::string& run_id, const std::vector<std::string>& hosts,
               const std::string& topology) {
  Facts facts{{"run_id", run_id},
              {"user", user_name()},
              {"launchdate", iso_time(session.clock.wall_seconds())},
              {"cmdline", session.command_line},
              {"hostname", host_name()},
              {"hostlist", join(hosts, ",")}};
  if (!topology.empty()) facts.emplace_back("topology", topology);
  facts.emplace_back("machine", machine_signature());
  facts.emplace_back("chorale_version", version);
  facts.emplace_back("hdf5_version", h5::version());
  for (const char* fact : {"git_commit", "git_dirty", "compiler", "cxxflags"}) facts.emplace_back(fact, built(fact));
  return facts;
}

std::unique_ptr<Recorder> open_record(const std::filesystem::path& folder, const Session& session,
                                      const std::vector<RankFacts>& ranks, bool takes_over) {
  auto recorder = std::make_unique<Recorder>(folder, facts_of_ranks(session, ranks, folder.filename().string()),
                                             session.clock, takes_over);
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
