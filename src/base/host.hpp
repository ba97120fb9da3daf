// The machine under this process: which cores the launcher left it, how much memory there is, what it may lock or map.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace chorale {

std::string host_name();
std::string user_name();
std::string cpu_model();
int online_cores();
std::string machine_signature();  // "AMD EPYC, 2 cores": what was measured of one holds for no other
std::string kernel_id();  // of the boot: ranks with the same one share cores and memory, whatever their hosts are called

std::vector<int> allowed_cpus();                  // this process's affinity
int current_cpu();                                // where it runs at this moment
std::string cpu_ranges(const std::vector<int>&);  // {0,1,2,5} → "0-2,5"

// Threads for one rank: its share of the cores that it and `sharers` ranks (itself included) may run on, at least one.
int threads_per_rank(int cpus, int sharers);

struct Limit {
  std::string name;   // "locked memory"
  std::string value;  // "unlimited", "64.0 KiB"
};
std::vector<Limit> limits();

std::int64_t memory_bytes();
std::int64_t last_level_cache_bytes();  // that this core shares; not, as sysconf tells, of a whole socket of several
std::filesystem::path cache_folder();   // $XDG_CACHE_HOME/chorale or ~/.cache/chorale; "" where neither is set
// A file as a whole or not at all: written beside its place, in a folder that is made if need be, then renamed. Returns why not, or "".
std::string replace_file(const std::filesystem::path& file, const std::string& text);
std::string first_line(const std::string& path);  // of a small file such as those in /proc; "" when unreadable

}  // namespace chorale
