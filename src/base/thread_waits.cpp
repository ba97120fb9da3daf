#include "src/base/thread_waits.hpp"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace chorale {

void let_waiting_threads_sleep(const std::vector<std::string>& words) {
  if (std::getenv("OMP_WAIT_POLICY") || std::getenv("GOMP_SPINCOUNT")) return;
  std::error_code unknown;
  // Executes the program by its path. If the program were executed through the link, ps would show a program called "exe".
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", unknown);
  if (unknown || setenv("GOMP_SPINCOUNT", "500", 1) != 0) return;
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execv(program.c_str(), arguments.data());
}

}  // namespace chorale
