// Files that Open MPI leaves behind if a job is killed: the ranks' shared-memory files and the launcher's session folder.
// The environment of the ranks contains the names of these files. Other libraries unlink their shared memory after all ranks
// have mapped it.
#pragma once
#include <filesystem>
#include <string>

namespace chorale {

class Leftovers {
 public:
  static Leftovers of_this_job();
  void remove() const;  // called after all ranks of this host have ended; keeps the folder while its launcher runs

 private:
  std::string job_;                // the job ID as it appears in file names; "" for launchers other than Open MPI's
  std::filesystem::path session_;  // the launcher's session folder; "" for launchers other than Open MPI's
};

}  // namespace chorale
