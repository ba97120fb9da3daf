// Checks at the start of a run that all hosts have the same program, similar clocks and the same input files. Without the
// check, ranks could compute different results, or fail later with an error that does not show the cause.
//
//   program    the linker wrote a build id into the program and each shared library; it is read from memory. The program,
//              chorale's libraries, MPI and UCX must have equal ids; other libraries only cause a warning
//   clocks     can differ by 5 minutes, because `watch` and the lines of the ranks' logs use wall-clock time
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

std::map<std::string, std::string> loaded_objects();  // only objects with a build id
// The fingerprint of a missing file is "missing". A folder's fingerprint covers the files in it.
std::string fingerprint_of(const std::filesystem::path& path);

// The three lines of an error, or nullopt if the hosts match. The facts are in the order of the ranks.
struct Unlike {
  std::string what, numbers, fix;
};
std::optional<Unlike> unlike(const std::vector<HostFacts>& ranks);
// Returns a one-line warning if hosts have different builds of a library for which this is allowed. Otherwise returns "".
std::string other_builds(const std::vector<HostFacts>& ranks);

// Collective. If a host does not match rank 0's host, every rank throws the same usage error.
void require_same_hosts(const mpi::Runtime& runtime, const Clock& clock, Log& log);
void require_same_files(const mpi::Runtime& runtime, const std::vector<std::string>& paths);  // ignores empty paths

}  // namespace chorale
