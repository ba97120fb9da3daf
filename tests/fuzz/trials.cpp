#include "tests/fuzz/trials.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "src/base/descriptor.hpp"
#include "src/base/error.hpp"
#include "tests/fuzz/mutation.hpp"
#include "tests/progress.hpp"
#include "tests/sanitized.hpp"
#include "tests/temporary.hpp"

namespace chorale::test {
namespace {

constexpr std::int64_t batch = 2000;  // trials per child process

// The progress of the child process. The progress is stored in shared memory, so that it survives a crash of the child.
struct Told {
  std::atomic<std::int64_t> trial, good_accepted, accepted;
  char exception[300];
};

class SharedTold {
 public:
  SharedTold()
      : told_(static_cast<Told*>(mmap(nullptr, sizeof(Told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {
    require(told_ != MAP_FAILED, "no shared memory: {}", std::strerror(errno));
  }
  ~SharedTold() { munmap(told_, sizeof(Told)); }
  SharedTold(const SharedTold&) = delete;
  Told* operator->() const { return told_; }

 private:
  Told* told_;
};

std::string input_of(const std::vector<std::string>& inputs, std::int64_t trial, std::uint64_t seed) {
  if (trial < static_cast<std::int64_t>(inputs.size())) return inputs[static_cast<std::size_t>(trial)];
  std::mt19937_64 chance(seed * 1'000'000'007 + static_cast<std::uint64_t>(trial));
  return mutated(inputs, chance);
}

void limit(int resource, std::int64_t most) {
  const rlimit both{static_cast<rlim_t>(most), static_cast<rlim_t>(most)};
  setrlimit(static_cast<__rlimit_resource_t>(resource), &both);
}

std::int64_t bytes_of_addresses() {
  long pages = 0;
  if (std::FILE* const file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%ld", &pages) != 1) pages = 0;
    std::fclose(file);
  }
  return pages * sysconf(_SC_PAGESIZE);
}

// The main function of a child process. Never returns.
[[noreturn]] void try_batch(const Target& target, const std::vector<std::string>& inputs, std::int64_t last,
                            std::uint64_t seed, const TrialLimits& limits, const SharedTold& told,
                            const std::filesystem::path& folder, int output) {
  limit(RLIMIT_CORE, 0);
  for (const int crash : {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV})
    signal(crash, SIG_DFL);  // removes the handlers of the test program
  if (!sanitized) limit(RLIMIT_AS, bytes_of_addresses() + limits.bytes);
  if (chdir(folder.c_str()) != 0 || dup2(output, STDOUT_FILENO) < 0 || dup2(output, STDERR_FILENO) < 0) _exit(1);
  for (; told->trial < last; ++told->trial) {
    const std::string input = input_of(inputs, told->trial, seed);
    try {
      target.run(input);
      ++(told->trial < static_cast<std::int64_t>(inputs.size()) ? told->good_accepted : told->accepted);
    } catch (const Error&) {
    } catch (const std::exception& error) {
      std::snprintf(told->exception, sizeof told->exception, "an exception that is no Error: %s", error.what());
      _exit(1);
    }
  }
  _exit(0);
}

double seconds_computed(pid_t child) {
  clockid_t clock{};
  timespec time{};
  if (clock_getcpuclockid(child, &clock) != 0 || clock_gettime(clock, &time) != 0) return 0;
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Waits for the child. Returns "" if the child has tried its complete batch. Otherwise returns a description of how the
// child ended.
std::string end_of(pid_t child, const SharedTold& told, const TrialLimits& limits) {
  std::int64_t trial = -1;
  double since = 0, waited = 0;
  for (int status = 0;;) {
    const pid_t ended = waitpid(child, &status, WNOHANG);
    if (ended == child && WIFSIGNALED(status)) return fmt::format("signal {}", WTERMSIG(status));
    if (ended == child && WEXITSTATUS(status) == 0) return "";
    if (ended == child) return told->exception[0] ? told->exception : fmt::format("exit code {}", WEXITSTATUS(status));
    if (told->trial != trial) {
      trial = told->trial;
      since = seconds_computed(child);
      waited = 0;
      alive();
    }
    // Even on a busy machine, a child that computes uses some CPU time. A child that waits uses none.
    const bool computes = seconds_computed(child) - since > limits.seconds;
    if (computes || waited > 15 * limits.seconds) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      return fmt::format("no end after {} s of {}", limits.seconds, computes ? "computing" : "waiting");
    }
    constexpr timespec millisecond{0, 1'000'000};
    nanosleep(&millisecond, nullptr);
    waited += 0.001;
    if (static_cast<std::int64_t>(waited * 1000) % 1000 == 0) alive();
  }
}

std::string said_by(int output) {
  std::string text(4000, '\0');
  const ssize_t got = pread(output, text.data(), text.size(), 0);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  return text.empty() ? "" : "\n" + text;
}

}  // namespace

Trials try_mutations(const Target& target, const std::vector<std::string>& inputs, std::int64_t count, std::uint64_t seed,
                     const TrialLimits& limits) {
  const TemporaryFolder folder;
  const SharedTold told;
  Trials trials;
  trials.good = static_cast<std::int64_t>(inputs.size());
  count += trials.good;
  while (told->trial < count && trials.findings.size() < limits.findings) {
    const Descriptor output(memfd_create("output of a target", MFD_CLOEXEC));
    const pid_t child = fork();
    require(child >= 0, "no process for the trials: {}", std::strerror(errno));
    if (child == 0)
      try_batch(target, inputs, std::min(count, told->trial + batch), seed, limits, told, folder, output.get());
    const std::string how = end_of(child, told, limits);
    if (how.empty()) continue;
    trials.findings.push_back({told->trial, how + said_by(output.get()), input_of(inputs, told->trial, seed)});
    told->exception[0] = '\0';
    ++told->trial;
  }
  trials.tried = told->trial;
  trials.good_accepted = told->good_accepted;
  trials.accepted = told->accepted;
  return trials;
}

}  // namespace chorale::test
