// Tests the text that a run prints about the measured pipeline schedule.
#include "experiments/train/gantt.hpp"

#include "tests/catch.hpp"

using namespace chorale;

TEST_CASE("a run whose pipeline took much longer than its schedule prints a likely reason") {
  const auto timeline = [](double waits) {
    const PipelineAction forward{.kind = Pass::forward}, backward{.kind = Pass::backward};
    return PipelineTimeline{1, 1, {{0, forward, 0, 0.01}, {0, backward, 0.01 + waits, 0.02 + waits}}};
  };
  const std::string busy = train::drawn({timeline(0.1), timeline(0), {}});
  CHECK(busy.find("the run took 6.00 times as long:") != std::string::npos);
  CHECK(busy.find("ranks wait for a core\n") != std::string::npos);
  const std::string quiet = train::drawn({timeline(0.002), timeline(0), {}});
  CHECK(quiet.find("the run took 1.10 times as long:") != std::string::npos);
  CHECK(quiet.find("core") == std::string::npos);
}
