// Checks the return value of Launcher::run() after a launch has ended.
#include "src/base/launcher.hpp"

#include <csignal>

#include "tests/catch.hpp"
#include "tests/temporary.hpp"

using namespace chorale;

TEST_CASE("a launch returns its exit code or 128 plus its signal, or throws if the status is unknown") {
  const test::TemporaryFolder folder;
  SystemClock clock;
  const auto end_of = [&](const char* command) {
    return Launcher().run({"sh", "-c", command}, folder / "output", folder / "errors", clock, [](int) {});
  };
  CHECK(end_of("exit 3") == 3);
  CHECK(end_of("kill -KILL $$") == 128 + SIGKILL);
  std::signal(SIGCHLD, SIG_IGN);  // makes the kernel discard exit codes
  CHECK_THROWS_WITH(end_of("exit 3"), says("the exit status of a child process is unknown"));
  std::signal(SIGCHLD, SIG_DFL);
}
