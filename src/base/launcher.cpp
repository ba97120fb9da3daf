#include "src/base/launcher.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include "src/base/built.hpp"
#include "src/base/child_program.hpp"
#include "src/base/error.hpp"
#include "src/base/mpi.hpp"
#include "src/base/text.hpp"

namespace chorale {

Launcher::Launcher(const Environment& environment) {
  const std::string named = environment("MPIRUN").value_or("");
  for (const std::string& word : split(trim(named).empty() ? built("mpirun") : named, ' '))
    if (!word.empty()) words_.push_back(word);
  if (words_.size() > 1 || mpi::library_name().find("Open MPI") == std::string::npos) return;
  if (geteuid() == 0) words_.push_back("--allow-run-as-root");
  for (const char* word : {"--bind-to", "none", "--map-by", "slot:OVERSUBSCRIBE"}) words_.push_back(word);
}

bool Launcher::reads_host_file() const { return std::filesystem::path(words_.at(0)).filename() == "srun"; }

std::string RankHosts::host_file() const {
  std::string lines;
  for (const auto& [host, ranks] : hosts)
    for (int rank = 0; rank < ranks; ++rank) lines += host + "\n";
  return lines;
}

std::vector<std::string> Launcher::command(std::int64_t ranks, const std::vector<std::string>& program,
                                           const RankHosts& where) const {
  std::vector<std::string> words = words_, hosts;
  const bool is_open_mpi = mpi::library_name().find("Open MPI") != std::string::npos;
  // In a job of Slurm, Open MPI takes the order and the slots of the hosts from the job, unless ranks are mapped one by one.
  for (const auto& [host, share] : where.hosts)
    if (is_open_mpi)
      hosts.insert(hosts.end(), static_cast<std::size_t>(share), host);
    else
      hosts.push_back(fmt::format("{}:{}", host, share));
  if (!hosts.empty() && reads_host_file())
    words.emplace_back("--distribution=arbitrary");  // srun passes on all variables
  else if (!hosts.empty())
    words.insert(words.end(), {is_open_mpi ? "--host" : "-hosts", join(hosts, ",")});
  if (!hosts.empty() && is_open_mpi && !reads_host_file()) words.insert(words.end(), {"--map-by", "seq:OVERSUBSCRIBE"});
  if (!hosts.empty() && is_open_mpi && !reads_host_file())  // MPICH and Intel MPI pass on all variables
    for (const std::string& name : where.variables) words.insert(words.end(), {"-x", name});
  words.insert(words.end(), {"-n", fmt::format("{}", ranks)});
  words.insert(words.end(), program.begin(), program.end());
  return words;
}

std::vector<std::string> Launcher::command_on(const std::string& host, const std::vector<std::string>& program,
                                              const std::vector<std::string>& variables) const {
  if (!reads_host_file()) return command(1, program, {.hosts = {{host, 1}}, .variables = variables});
  std::vector<std::string> words = words_;
  words.insert(words.end(), {"--nodes=1", "--nodelist=" + host, "--ntasks=1"});
  words.insert(words.end(), program.begin(), program.end());
  return words;
}

int Launcher::run(const std::vector<std::string>& command, const std::filesystem::path& output,
                  const std::filesystem::path& errors, Clock& clock, const std::function<void(int pid)>& meanwhile) const {
  const ChildEnd end = run_to_the_end(
      {.words = command, .output = output, .errors = errors, .environment = own_environment()}, clock, meanwhile);
  if (!end.trouble.empty())
    usage_error("the launcher of the ranks cannot be started",
                fmt::format("{}: {}; this program was built with {}", command[0], end.trouble, mpi::library_name()),
                "install that MPI's launcher (make setup does), or name another: MPIRUN=\"srun --mpi=pmix\" chorale …");
  return end.code;
}

}  // namespace chorale
