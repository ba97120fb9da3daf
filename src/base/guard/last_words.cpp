#include "src/base/guard/last_words.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

#include <cstdint>
#include <optional>

#include "src/base/host.hpp"

namespace chorale {
namespace {

// The same struct as in linux/pidfd.h of Linux 6.15, because Debian 12's headers are older.
struct PidfdInfo {
  std::uint64_t mask = 1 << 3;  // requests the exit code
  std::uint64_t cgroup = 0;
  std::uint32_t ids[11] = {};
  std::int32_t exit_code = 0;
};
static_assert(sizeof(PidfdInfo) == 64);

std::optional<int> code_from_pidfd(int process) {
  PidfdInfo info;
  const bool told = ioctl(process, _IOWR(0xFF, 11, PidfdInfo), &info) == 0 && (info.mask & (1 << 3));
  return told ? std::optional(info.exit_code) : std::nullopt;
}

// Returns the last field of /proc/PID/stat. The second field, the program's name, can contain blanks.
std::optional<int> code_from_stat(int pid) {
  const std::string stat = contents_of(fmt::format("/proc/{}/stat", pid)).value_or("");
  const std::size_t name = stat.rfind(')'), last = stat.find_last_of(' ');
  if (name == std::string::npos || stat.size() < name + 3 || stat[name + 2] != 'Z') return std::nullopt;
  return std::atoi(stat.c_str() + last);
}

}  // namespace

std::string last_words(int pid, int process, Clock& clock) {
  constexpr double patience_seconds = 0.2, pause_seconds = 2e-5;
  for (const double until = clock.seconds() + patience_seconds; clock.seconds() < until; clock.sleep(pause_seconds)) {
    auto code = code_from_stat(pid);
    const bool collected = !code && !contents_of(fmt::format("/proc/{}/stat", pid));
    if (!code) code = code_from_pidfd(process);
    if (!code && collected) break;
    if (!code) continue;
    if (!WIFSIGNALED(*code)) return fmt::format("exited with code {}", WEXITSTATUS(*code));
    return fmt::format("was killed by SIG{}", sigabbrev_np(WTERMSIG(*code)));
  }
  return "ended, probably by a signal: the launcher says which";
}

}  // namespace chorale
