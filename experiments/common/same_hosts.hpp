// Checks at the start that hosts fit together: the same program, clocks that agree, the same input files. Otherwise ranks
// would compute different things, or fail later without a reason that can be understood.
//
//   program    the build id that the linker wrote into it and into each shared library; read from memory, no file is opened.
//              The program, our own libraries, MPI and UCX must be the same; other libraries only cause a warning
//   clocks     may differ by 5 minutes: `watch` and the lines of the ranks' logs are read by wall-clock time
//   files      size and checksum of 64 blocks of 4 KiB, spread over the file. A file of any size thus costs at most
//              64 reads, which are 64 seeks if the file is on a disk and not cached
#pragma once
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "src/base/log.hpp"
#include "src/base/mpi.hpp"

namespace chorale {

struct HostFacts {
  std::string host;
  double wall_seconds = 0;
  std::map<std::string, std::string> objects = {};  // the program and its shared libraries: name → build id
  std::map<std::string, std::string> files = {};    // input files: path → fingerprint
};

std::map<std::string, std::string> loaded_objects();  // without those that have no build id
// The fingerprint of a missing file is "missing". A folder's fingerprint covers the files in it.
std::string fingerprint_of(const std::filesystem::path& path);

// The three lines of an error, or nullopt. The facts are in the order of the ranks.
struct Unlike {
  std::string what, numbers, fix;
};
std::optional<Unlike> unlike(const std::vector<HostFacts>& ranks);
// A warning of one line about the other libraries; "" if all hosts have the same.
std::string other_builds(const std::vector<HostFacts>& ranks);

// Collective. Every rank throws the same usage error if its host does not fit rank 0's.
void require_same_hosts(const mpi::Runtime& runtime, const Clock& clock, Log& log);
void require_same_files(const mpi::Runtime& runtime, const std::vector<std::string>& paths);  // ignores empty paths

}  // namespace chorale
