#include "src/base/guard/leftovers.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>

namespace chorale {

std::set<std::filesystem::path> shared_files_of(int pid) {
  std::set<std::filesystem::path> files;
  std::ifstream maps(fmt::format("/proc/{}/maps", pid));
  for (std::string line; std::getline(maps, line);) {
    const std::size_t path = line.find("/dev/shm/");
    if (path != std::string::npos && !line.ends_with(" (deleted)")) files.insert(line.substr(path));
  }
  return files;
}

// The name is checked, because everything in the folder will be removed.
std::filesystem::path session_folder() {
  const char* const named = std::getenv("OMPI_MCA_orte_jobfam_session_dir");
  if (!named) return {};
  const std::filesystem::path folder = named;
  const bool is_of_a_job = folder.filename().string().starts_with("pid.") || folder.filename().string().starts_with("jf.");
  return folder.is_absolute() && is_of_a_job && folder.parent_path().filename().string().starts_with("ompi.") ? folder : "";
}

}  // namespace chorale
