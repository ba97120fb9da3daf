// Files that Open MPI leaves behind if a job is killed: shared memory of its ranks, and the launcher's folder. Their names
// are known from the environment of the ranks. Other libraries unlink their shared memory as soon as all ranks have mapped
// it.
#pragma once
#include <filesystem>
#include <string>

namespace chorale {

class Leftovers {
 public:
  static Leftovers of_this_job();
  void remove() const;  // call it when all ranks of this host have ended; the folder stays while its launcher runs

 private:
  std::string job_;                // the job id as in file names; "" with other launchers
  std::filesystem::path session_;  // "" likewise
};

}  // namespace chorale
