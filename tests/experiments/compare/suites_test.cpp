// Tests that every suite in experiments/suites is valid. `compare` must accept each suite when started on the number of
// ranks that the suite needs.
#include <filesystem>

#include "experiments/compare/prepared.hpp"
#include "tests/catch.hpp"

namespace chorale::compare {
namespace {

TEST_CASE("every suite in experiments/suites is legal") {
  std::size_t suites = 0;
  for (const auto& file : std::filesystem::directory_iterator("experiments/suites")) {
    std::vector<Mistake> mistakes;
    const Suite suite = read_suite(file.path(), mistakes);
    std::int64_t ranks = std::max<std::int64_t>(suite.ranks, 1);
    for (const SuiteRun& run : suite.runs) ranks = std::max<std::int64_t>(ranks, run.ranks);
    check_runs(suite, ".", {.launcher = "mpirun", .size = static_cast<int>(ranks)}, mistakes);
    INFO(file.path().string());
    CHECK(!suite.question.empty());
    CHECK(!suite.runs.empty());
    for (const Mistake& mistake : mistakes) FAIL_CHECK(mistake.line << ": " << mistake.text);
    ++suites;
  }
  CHECK(suites > 10);
}

}  // namespace
}  // namespace chorale::compare
