#include "src/base/guard/leftovers.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

#include "src/base/host.hpp"

namespace chorale {
namespace fs = std::filesystem;

// The complete session folder will be removed, so its name is checked first. The name contains the launcher's process id.
Leftovers Leftovers::of_this_job() {
  Leftovers found;
  if (const char* const job = std::getenv("OMPI_MCA_ess_base_jobid"))
    found.job_ = fmt::format(".{:x}.", std::strtoul(job, nullptr, 10));
  const char* const named = std::getenv("OMPI_MCA_orte_jobfam_session_dir");
  const fs::path folder = named ? named : "";
  const std::string name = folder.filename().string(), above = folder.parent_path().filename().string();
  if (folder.is_absolute() && name.starts_with("pid.") && above.starts_with("ompi.")) found.session_ = folder;
  return found;
}

// "/dev/shm/vader_segment.HOST.UID.JOB.RANK"
void Leftovers::remove() const {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator("/dev/shm", ignored)) {
    const std::string name = entry.path().filename().string();
    struct stat about {};
    const bool is_of_job = !job_.empty() && name.starts_with("vader_segment.") && name.find(job_) != std::string::npos;
    if (is_of_job && lstat(entry.path().c_str(), &about) == 0 && about.st_uid == getuid()) fs::remove(entry, ignored);
  }
  if (!session_.empty() && !is_running(std::atoi(session_.filename().string().c_str() + 4)))
    fs::remove_all(session_, ignored);
}

}  // namespace chorale
