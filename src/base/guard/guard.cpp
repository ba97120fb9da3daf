#include "src/base/guard/guard.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <functional>

#include <chorale/clock.hpp>
#include "src/base/abstract_socket.hpp"
#include "src/base/guard/leftovers.hpp"
#include "src/base/guard/watchman.hpp"
#include "src/base/host.hpp"
#include "src/base/passed_files.hpp"
#include "src/base/text.hpp"
#include "src/base/wait.hpp"

namespace chorale {
namespace {

// Returns a name that is equal on all ranks of one job on one host, and different on all other ranks.
std::string name_of_guard(const Launch& launch, const Environment& environment) {
  const auto said = [&](const char* name) { return environment(name).value_or(""); };
  std::string job = fmt::format("{}", getppid());
  if (launch.launcher.starts_with("Open MPI")) job = said("PMIX_NAMESPACE") + said("PMIX_SERVER_URI2");
  if (launch.launcher.starts_with("Slurm")) job = said("SLURM_JOB_ID") + "." + said("SLURM_STEP_ID");
  return fmt::format("chorale-guard-{}-{:016x}", getuid(), std::hash<std::string>{}(job));
}

// A launcher asks ranks to end by sending SIGTERM, even if a user presses Ctrl-C. The launcher only forwards SIGUSR1.
std::string after_request(const Launch& launch, const Environment& environment) {
  if (!launch.launcher.starts_with("Open MPI"))
    return "the launcher may kill them before that; SIGUSR1 asks without a limit";
  const std::string seconds = environment("OMPI_MCA_odls_base_sigkill_timeout").value_or("1");
  return fmt::format("Open MPI kills them {} s after it asks; kill -USR1 {} asks without a limit", seconds,
                     launch.one_host() ? fmt::format("{}", getppid()) : "PID_OF_MPIRUN");
}

Descriptor new_socket() { return Descriptor(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)); }

// Prevents this process from looking like a rank to people who list processes, and to tools that find ranks by command line
// or environment. Overwrites the command line and the environment in the memory from which the kernel shows them.
void hide_the_rank() {
  prctl(PR_SET_NAME, "chorale-guard");
  const std::string stat = contents_of("/proc/self/stat").value_or("");
  const std::vector<std::string> fields = split(std::string_view(stat).substr(stat.rfind(')') + 1), ' ');
  constexpr std::size_t arguments = 46, variables = 48;  // indices of the fields with the start addresses; the field after
                                                         // each of them has the end address. `fields[1]` is the process
                                                         // state
  if (fields.size() <= variables + 1) return;
  const auto address = [&](std::size_t field) { return reinterpret_cast<char*>(std::stoull(fields[field])); };
  for (const std::size_t what : {arguments, variables})
    std::memset(address(what), 0, static_cast<std::size_t>(address(what + 1) - address(what)));
  std::strncpy(address(arguments), "chorale-guard",
               static_cast<std::size_t>(address(arguments + 1) - address(arguments)) - 1);
}

// A double fork detaches the guard, so that neither the rank nor the launcher waits for it. The guard also leaves the rank's
// process group, because launchers kill the complete group. The guard closes all files of the rank except stderr.
void start_guard(Descriptor listening, const Launch& launch, const Environment& environment) {
  const WatchmansJob job{launch.size, launch.on_host, after_request(launch, environment), Leftovers::of_this_job(),
                         environment(supervisor_variable).value_or("")};
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child > 0) waitpid(child, nullptr, 0);  // this child ends immediately
  if (child != 0) return;
  if (fork() != 0) _exit(0);
  setpgid(0, 0);
  for (const int ignored : {SIGPIPE, SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2}) signal(ignored, SIG_IGN);
  hide_the_rank();
  constexpr int kept = 3;
  dup2(listening.release(), kept);
  close_range(kept + 1, ~0u, 0);
  const int nothing = open("/dev/null", O_RDWR);
  dup2(nothing, 0);
  dup2(nothing, 1);
  try {
    SystemClock clock;
    watch(Descriptor(kept), job, clock);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "warning: %s has no guard any more: %s\n", host_name().c_str(), error.what());
  }
  _exit(0);
}

// The rank that binds the name starts the guard. Another rank can try to connect before the guard listens, or while an
// earlier guard is ending.
Descriptor line_to_guard(const Launch& launch, const Environment& environment) {
  constexpr double patience_seconds = 2;
  const AbstractAddress address(name_of_guard(launch, environment));
  SystemClock clock;
  for (const double until = clock.seconds() + patience_seconds; clock.seconds() < until; clock.sleep(1e-3)) {
    if (Descriptor listening = new_socket(); bind(listening.get(), address.get(), address.length()) == 0) {
      fcntl(listening.get(), F_SETFL, O_NONBLOCK);
      if (listen(listening.get(), 4096) != 0) return {};
      start_guard(std::move(listening), launch, environment);
    }
    if (Descriptor line = new_socket(); connect(line.get(), address.get(), address.length()) == 0)
      return is_own_user(line.get()) ? std::move(line) : Descriptor();  // another user's process might own the name
  }
  return {};
}

}  // namespace

std::unique_ptr<Flight> join_guard(const Launch& launch, const Environment& environment) {
  const bool is_watched = launch.size > 1 || environment(supervisor_variable);  // a single rank waits for no other rank
  if (!is_watched || !parse_switch(environment("CHORALE_GUARD").value_or("yes")).value_or(true)) return nullptr;
  const Descriptor file(memfd_create("chorale-flight", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file || ftruncate(file.get(), sizeof(FlightPage)) != 0 || fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK) != 0)
    return nullptr;
  SharedPage page(file.get());
  page->rank = launch.rank;
  page->size = launch.size;
  page->pid = getpid();
  put(page->host, host_name());
  put(page->program, program_invocation_name);
  put(page->doing, "start-up");
  page->supervised = environment(supervisor_variable).has_value();
  page->patience = time_limit(page->patience);
  Descriptor line = line_to_guard(launch, environment);
  if (!line || !send_files(line.get(), "page", {file.get()})) return nullptr;
  return std::make_unique<Flight>(std::move(line), std::move(page));
}

}  // namespace chorale
