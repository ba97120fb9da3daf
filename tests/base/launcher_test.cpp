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

TEST_CASE("a launcher gets the hosts of the ranks in its own words") {
  const RankHosts where{.hosts = {{"n0", 2}, {"n1", 1}}, .variables = {"CHORALE_KEEPER"}};
  CHECK(where.host_file() == "n0\nn0\nn1\n");
  const auto command = [&](const char* launcher) {
    std::string text;
    const Launcher one([launcher](const char* name) -> std::optional<std::string> {
      return name == std::string("MPIRUN") ? launcher : "";
    });
    for (const std::string& word : one.command(3, {"program", "word"}, where)) text += word + " ";
    return text;
  };
  CHECK(command("srun --mpi=pmix") == "srun --mpi=pmix --distribution=arbitrary -n 3 program word ");
  const std::string other = command("/opt/mpi/bin/mpirun -v");
  CHECK((other == "/opt/mpi/bin/mpirun -v --host n0,n0,n1 --map-by seq:OVERSUBSCRIBE -x CHORALE_KEEPER -n 3 program word " ||
         other == "/opt/mpi/bin/mpirun -v -hosts n0:2,n1:1 -n 3 program word "));
}
