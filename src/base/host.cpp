#include "src/base/host.hpp"

#include <fmt/format.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <set>

#include "src/base/text.hpp"

namespace chorale {

std::string host_name() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

std::string user_name() {
  const passwd* entry = getpwuid(getuid());
  return entry ? entry->pw_name : fmt::format("{}", getuid());
}

std::int64_t last_level_cache_bytes() {
  std::int64_t bytes = 1 << 20;
  for (const char* index : {"2", "3"}) {
    const std::string size = first_line(fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/size", index));
    if (const auto found = parse_bytes(size)) bytes = std::max(bytes, *found);
  }
  return bytes;
}

std::optional<std::string> contents_of(const std::filesystem::path& file) try {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(stream), {});
} catch (const std::ios_base::failure&) {  // the path is a folder, or its disk has failed
  return std::nullopt;
}

std::string first_line(const std::string& path) {
  std::string line;
  std::ifstream file(path);
  std::getline(file, line);
  return line;
}

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name")) return trim(line.substr(line.find(':') + 1));
  return "unknown";
}

int online_cores() { return static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)); }

std::string machine_signature() { return fmt::format("{}, {} cores", cpu_model(), online_cores()); }

std::string kernel_id() {
  const std::string boot = first_line("/proc/sys/kernel/random/boot_id");
  return boot.empty() ? host_name() : boot;
}

bool is_running(int pid) {
  if (kill(pid, 0) != 0) return false;
  const std::string stat = first_line(fmt::format("/proc/{}/stat", pid));  // "17 (a name) S …"
  const auto name_end = stat.rfind(") ");
  return name_end == std::string::npos || (stat[name_end + 2] != 'Z' && stat[name_end + 2] != 'X');
}

std::filesystem::path cache_folder() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache && *cache) return std::filesystem::path(cache) / "chorale";
  if (const char* home = std::getenv("HOME"); home && *home) return std::filesystem::path(home) / ".cache/chorale";
  return {};
}

std::string replace_file(const std::filesystem::path& file, const std::string& text) {
  std::error_code error;
  if (file.has_parent_path()) std::filesystem::create_directories(file.parent_path(), error);
  if (error) return error.message();
  if (std::filesystem::is_symlink(file, error))
    if (const std::filesystem::path target = std::filesystem::canonical(file, error); !error)
      return replace_file(target, text);
  if (std::filesystem::exists(file, error) && !std::filesystem::is_regular_file(file, error)) {  // such as /dev/stdout
    std::ofstream stream(file);
    stream << text << std::flush;
    return stream ? "" : std::strerror(errno);
  }
  const std::filesystem::path unfinished = fmt::format("{}.{}", file.string(), getpid());
  std::ofstream stream(unfinished);
  stream << text;
  stream.close();
  std::string why_not = stream ? "" : std::strerror(errno);
  if (why_not.empty()) std::filesystem::rename(unfinished, file, error);
  if (error) why_not = error.message();
  if (!why_not.empty()) std::filesystem::remove(unfinished, error);
  return why_not;
}

std::vector<int> allowed_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  return cpus;
}

std::vector<int> sockets_of(const std::vector<int>& cpus) {
  std::set<int> sockets;
  for (const int cpu : cpus) {
    const std::string id = first_line(fmt::format("/sys/devices/system/cpu/cpu{}/topology/physical_package_id", cpu));
    if (!id.empty()) sockets.insert(std::atoi(id.c_str()));
  }
  sockets.erase(-1);  // the kernel reports −1 if the processor has no sockets
  return {sockets.begin(), sockets.end()};
}

int current_cpu() { return sched_getcpu(); }

std::string cpu_ranges(const std::vector<int>& cpus) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < cpus.size();) {
    std::size_t last = i;
    while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) ++last;
    parts.push_back(last == i ? fmt::format("{}", cpus[i]) : fmt::format("{}-{}", cpus[i], cpus[last]));
    i = last + 1;
  }
  return join(parts, ",");
}

int threads_per_rank(int cpus, int sharers) { return std::max(1, cpus / std::max(1, sharers)); }

std::vector<Limit> limits() {
  std::vector<Limit> all;
  const struct {
    int resource;
    const char* name;
    bool bytes, of_memory;
  } asked[] = {{RLIMIT_MEMLOCK, "locked memory", true, false},
               {RLIMIT_AS, "address space", true, true},
               {RLIMIT_DATA, "data segment", true, true},
               {RLIMIT_NOFILE, "open files", false, false},
               {RLIMIT_NPROC, "processes", false, false}};
  for (const auto& a : asked) {
    rlimit limit{};
    if (getrlimit(static_cast<decltype(RLIMIT_AS)>(a.resource), &limit) != 0) continue;
    const auto value = static_cast<std::int64_t>(limit.rlim_cur);
    all.push_back({a.name,
                   limit.rlim_cur == RLIM_INFINITY ? "unlimited"
                   : a.bytes                       ? human_bytes(value)
                                                   : fmt::format("{}", value),
                   a.of_memory});
  }
  struct statvfs shared {};
  if (statvfs("/dev/shm", &shared) == 0)
    all.push_back({"/dev/shm", human_bytes(static_cast<std::int64_t>(shared.f_bavail * shared.f_frsize)) + " free"});
  return all;
}

ResidentMemory resident_memory() {
  const std::string status = contents_of("/proc/self/status").value_or("");  // "VmRSS:     43520 kB"
  const auto in_bytes = [&](const std::string& name) {
    const auto at = status.find(name);
    return at == std::string::npos ? 0 : 1024 * std::stoll(status.substr(at + name.size()));
  };
  return {in_bytes("VmRSS:"), in_bytes("VmHWM:")};
}

std::int64_t memory_bytes() { return std::int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGE_SIZE); }

}  // namespace chorale
