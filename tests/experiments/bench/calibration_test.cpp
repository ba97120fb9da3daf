// Tests `tune --calibrate` if a signal arrives while rank 0 fits prices (cost-model parameters) and the other ranks sleep.
#include "experiments/bench/calibration.hpp"

#include <filesystem>

#include "tests/spmd.hpp"
#include "tests/temporary.hpp"

using namespace chorale;

TEST_CASE("if a signal stops the fit, the calibration is incomplete on every rank, and no file is written", "[spmd]") {
  const mpi::Runtime& world = test::world();
  if (world.size() != 2) return;
  if (test::only_in_test_all("a fit that is told to stop: fit_test.cpp; rows that a signal stops: bench_test.py")) return;
  const test::TemporaryFolder folder;
  const auto file = folder.path() / "machine.toml";
  const Options options("tune");
  const std::string words = "a test", level = "off";
  SystemClock clock;
  const Session session{options, words, level, clock, &world};
  std::int64_t looks = 0, looks_at_calls = 0;  // number of signal checks: all, and those while calls are measured
  bench::Sweep sweep{.backends = {"mpi"},
                     .wanted = {.ops = {"all_reduce"}, .algorithms = {"ring"}, .begin = 1 << 10, .end = 8 << 10},
                     .how = {.repetitions = 1, .check = false, .ceiling = false}};

  sweep.how.told_to_stop = [&] {
    ++looks;
    return false;
  };
  REQUIRE_ALL(bench::calibrate(sweep, session, file));
  REQUIRE_ALL(std::filesystem::exists(file) == (world.rank() == 0));
  const std::vector<std::int64_t> all = mpi::all_gather(world.world(), looks);
  looks_at_calls = all[1];
  REQUIRE_ALL((all[0] > looks_at_calls && looks_at_calls > 0));

  std::filesystem::remove(file);
  looks = 0;
  sweep.how.told_to_stop = [&] { return ++looks > looks_at_calls; };
  REQUIRE_ALL(!bench::calibrate(sweep, session, file));
  REQUIRE_ALL(looks >= looks_at_calls);
  REQUIRE_ALL(!std::filesystem::exists(file));
}
