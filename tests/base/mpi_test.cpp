#include "src/base/mpi.hpp"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "src/base/log.hpp"
#include "src/base/signals.hpp"
#include "tests/spmd.hpp"
#include "tests/temporary.hpp"

using namespace chorale;
using namespace chorale::test;

TEST_CASE("texts of a different length on each rank are gathered in rank order", "[spmd]") {
  const int rank = world().rank();
  const auto texts =
      mpi::gather(world().world(), std::string(static_cast<std::size_t>(rank * 1000), static_cast<char>('a' + rank)));
  bool right = texts.size() == (rank == 0 ? static_cast<std::size_t>(world().size()) : 0);
  for (std::size_t r = 0; r < texts.size(); ++r)
    right = right && texts[r] == std::string(r * 1000, static_cast<char>('a' + r));
  REQUIRE_ALL(right);
}

TEST_CASE("rank 0's text reaches every rank", "[spmd]") {
  const std::string mine = world().rank() == 0 ? "from rank 0" : "a longer text that is replaced";
  REQUIRE_ALL(mpi::broadcast(world().world(), mine) == "from rank 0");
  REQUIRE_ALL(mpi::broadcast(world().world(), "") == "");
}

TEST_CASE("each rank learns the offset of its clock from rank 0's", "[spmd]") {
  struct Shifted : SystemClock {
    explicit Shifted(double by) : by_(by) {}
    double seconds() const override { return SystemClock::seconds() + by_; }
    double by_;
  };
  const double by = 100.0 * world().rank();
  const double offset = mpi::clock_offset(world().world(), Shifted(by));
  REQUIRE_ALL(offset == Approx(-by).margin(0.05));
}

TEST_CASE("ranks sleep until the last rank arrives", "[spmd]") {
  struct Counting : SystemClock {
    void sleep(double seconds) override {
      SystemClock::sleep(seconds);
      ++sleeps;
    }
    int sleeps = 0;
  } clock;
  const bool last = world().rank() == world().size() - 1;
  for (int i = 0; last && i < 5; ++i) SystemClock().sleep(0.01);
  const double came = clock.wall_seconds();
  mpi::sleep_until_all(world().world(), clock);
  const double left = clock.wall_seconds();
  const auto all = mpi::all_gather(world().world(), static_cast<std::int64_t>(came * 1e6));
  REQUIRE_ALL(left * 1e6 >= static_cast<double>(*std::max_element(all.begin(), all.end())));
  REQUIRE_ALL((last || clock.sleeps > 0));
}

TEST_CASE("a failed MPI call throws an error", "[spmd]") {
  REQUIRE_ALL_THROWS(mpi::check(PMPI_Send(nullptr, 1, MPI_INT, world().size() + 7, 0, world().world())),
                     "an MPI call failed");
}

TEST_CASE("a runtime uses an MPI that is already initialized, and does not finalize it", "[spmd]") {
  {
    const mpi::Runtime second(Launch{});
    REQUIRE_ALL(second.size() == world().size());
  }
  int finalized = 1;
  PMPI_Finalized(&finalized);
  REQUIRE_ALL(!finalized);
}

TEST_CASE("each rank has a log file, in which control characters are escaped") {
  const TemporaryFolder folder;
  for (const int rank : {0, 3}) {
    Log log({.rank = rank, .level = "off", .folder = folder.path()});
    log.debug("rank {} was here", rank);
    log.error("bad \x1b[2J text");
  }
  for (const char* name : {"rank-0.log", "rank-3.log"}) {
    std::ostringstream text;
    text << std::ifstream(folder / name).rdbuf();
    CHECK(text.str().find(std::string("Z D rank ") + name[5] + " was here") != std::string::npos);
    CHECK(text.str().find("Z E error: bad \\x1b[2J text") != std::string::npos);
  }
  CHECK_THROWS(Log({.level = "loud"}));
}

TEST_CASE("signals to stop are collected, not obeyed at once") {
  Signals signals;
  CHECK_FALSE(signals.pending());
  std::raise(SIGTERM);
  std::raise(SIGUSR1);
  const int first = signals.pending().value_or(0), second = signals.pending().value_or(0);
  CHECK((first + second == SIGTERM + SIGUSR1));
  CHECK_FALSE(signals.pending());
  std::raise(SIGUSR1);  // `signals` consumes this signal, so it is not delivered after `signals` is destroyed
}
