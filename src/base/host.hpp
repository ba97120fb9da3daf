// The host of this process: the cores and the memory that the process is allowed to use, and its resource limits.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace chorale {

std::string host_name();
std::string user_name();
std::string cpu_model();
int online_cores();
std::string machine_signature();  // "AMD EPYC, 2 cores"; a measurement is valid only on machines with the same signature
std::string kernel_id();  // identifies the running kernel; ranks with equal ids share cores, even if their host names differ

bool is_running(int pid);  // false for a process that has ended, even if its parent has not collected it (a zombie)

std::vector<int> allowed_cpus();                            // the CPUs of this process's affinity mask
std::vector<int> sockets_of(const std::vector<int>& cpus);  // ascending; empty if the kernel does not report sockets
int current_cpu();                                          // the CPU on which this thread is running
std::string cpu_ranges(const std::vector<int>&);            // {0,1,2,5} → "0-2,5"

// Returns the number of threads per rank if `sharers` ranks share `cpus` cores. The number is at least one.
int threads_per_rank(int cpus, int sharers);

struct Limit {
  std::string name;        // "locked memory"
  std::string value;       // "unlimited", "64.0 KiB"
  bool of_memory = false;  // true: allocations beyond this limit fail
};
std::vector<Limit> limits();
inline constexpr const char* more_memory =
    "raise the limits of the process (ulimit -v, ulimit -d), or use a smaller model or batch";  // the line of an error
                                                                                                // message that suggests a
                                                                                                // fix

std::int64_t memory_bytes();
// The resident memory of this process as counted by the kernel, including libraries and shared memory: the current value and
// the peak.
struct ResidentMemory {
  std::int64_t bytes = 0, peak_bytes = 0;
};
ResidentMemory resident_memory();
std::int64_t last_level_cache_bytes();  // size of CPU 0's last-level cache; sysconf can report the sum over a socket's
                                        // caches instead
std::filesystem::path cache_folder();   // $XDG_CACHE_HOME/chorale or ~/.cache/chorale; "" if neither variable is set
// Replaces a file atomically: writes a temporary file next to it, and then renames that file. Creates the folder if needed.
// Returns "" on success, and otherwise the reason for the failure.
std::string replace_file(const std::filesystem::path& file, const std::string& text);
std::optional<std::string> contents_of(const std::filesystem::path& file);  // nullopt if the file cannot be read
std::string first_line(const std::string& path);  // the first line of a small file, such as one in /proc; "" if unreadable

}  // namespace chorale
