#include "src/base/host.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include "tests/catch.hpp"

namespace chorale {

TEST_CASE("a process runs until it ends, not until its parent collects it") {
  CHECK(is_running(getpid()));
  const pid_t child = fork();
  if (child == 0) _exit(0);
  siginfo_t info{};
  REQUIRE(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT) == 0);  // it has ended, and is a zombie
  CHECK_FALSE(is_running(child));
  REQUIRE(waitpid(child, nullptr, 0) == child);
  CHECK_FALSE(is_running(child));
}

}  // namespace chorale
