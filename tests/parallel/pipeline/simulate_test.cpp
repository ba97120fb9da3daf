// Tests simulated pipelines. Durations must equal the formulas of the papers exactly, and no event is allowed to begin
// before its inputs are ready.
#include "parallel/pipeline/simulate.hpp"

#include <algorithm>

#include "tests/parallel/pipeline/shapes.hpp"

using namespace chorale;
using test::each_pipeline;
using test::planned;

namespace {

PipelineTimeline equal(const PipelineSchedule& schedule) { return simulate(schedule, equal_parts(schedule)); }

const PipelineEvent& event(const PipelineTimeline& timeline, std::int64_t stage, const PipelineAction& action) {
  return *std::find_if(timeline.events.begin(), timeline.events.end(),
                       [&](const PipelineEvent& e) { return e.stage == stage && e.action == action; });
}

}  // namespace

TEST_CASE("with equal stages the bubble matches the formulas") {
  each_pipeline(8, 16, [&](const std::string& name, const PipelineSchedule& schedule) {
    const auto p = static_cast<double>(schedule.stages), m = static_cast<double>(schedule.micro_batches),
               v = static_cast<double>(schedule.chunks);
    const PipelineTimeline timeline = equal(schedule);
    double expected = 3 * m;  // a stage works 3 seconds per micro-batch; the bubble is added below
    if (name == "naive") expected *= p;
    if (name == "gpipe" || name == "1f1b") expected += 3 * (p - 1);
    if (name == "interleaved") expected += 3 * (p - 1) / v;
    if (name == "zb-h1") expected = m >= p ? expected + (p - 1) : 2 * (p + m) - 1;
    if (name == "v-min" && p > 1) expected += 2 * p - (schedule.stages % 3 == 0 && m > 1 ? 1.5 : 2.5);
    CHECK(timeline.seconds() == Approx(expected).margin(1e-9));
    CHECK(timeline.seconds() == Approx(3 * (m + find_pipeline_schedule(name)->bubble(schedule))).margin(1e-9));
    CHECK(timeline.bubble() == Approx(1 - 3 * m / expected).margin(1e-9));
    if (name == "1f1b" || name == "gpipe") CHECK(timeline.bubble() == Approx((p - 1) / (m + p - 1)).margin(1e-9));
  });
}

TEST_CASE("every event of a simulated pipeline follows its inputs, and a stage runs one event at a time") {
  each_pipeline(4, 8, [&](const std::string&, const PipelineSchedule& schedule) {
    PipelineSeconds seconds;  // all parts take different times
    for (std::int64_t part = 0; part < schedule.parts(); ++part) {
      const auto i = static_cast<double>(part);
      seconds.parts.push_back({1 + i / 3, 2 + i / 5, 1 + i / 7});
    }
    seconds.message = 0.25;
    const PipelineTimeline timeline = simulate(schedule, seconds);
    for (const PipelineEvent& taker : timeline.events) {
      const auto source = source_of(schedule, {taker.stage, taker.action});
      if (!source) continue;
      const double message = source->stage == taker.stage ? 0 : 0.25;
      CHECK(event(timeline, source->stage, source->action).ends + message <= taker.begins + 1e-9);
    }
    for (std::int64_t stage = 0; stage < schedule.stages; ++stage) {
      double until = 0;
      for (const PipelineAction& action : schedule.actions[static_cast<std::size_t>(stage)]) {
        const PipelineEvent& e = event(timeline, stage, action);
        CHECK(e.begins >= until);
        until = e.ends;
      }
    }
  });
}

TEST_CASE("messages and uneven stages lengthen a pipeline by the expected time") {
  const PipelineSchedule gpipe = planned("gpipe", {3, 4});
  PipelineSeconds seconds = equal_parts(gpipe);
  seconds.message = 0.5;  // 4 messages on the critical path: two directions times two boundaries
  CHECK(simulate(gpipe, seconds).seconds() == Approx(3 * (4 + 2) + 4 * 0.5).margin(1e-9));
  seconds.message = 0;
  seconds.parts[1] = {2, 2, 2};  // the slowest stage determines the speed
  CHECK(simulate(gpipe, seconds).seconds() == Approx(6 * 4 + 3 * 2).margin(1e-9));
  CHECK(simulate(gpipe, seconds).idle(1) == Approx(6).margin(1e-9));
  CHECK(simulate(gpipe, seconds).idle(0) == Approx(18).margin(1e-9));
}

TEST_CASE("a measured timeline begins with its first event") {
  const PipelineTimeline measured{2, 1, {{0, {Pass::forward, 0}, 100, 101}, {1, {Pass::forward, 0}, 102, 104}}};
  CHECK(measured.begins() == 100);
  CHECK(measured.seconds() == 4);
  CHECK(measured.idle(0) == 3);
  CHECK(measured.bubble() == 5.0 / 8);
  CHECK(PipelineTimeline{}.seconds() == 0);
}

TEST_CASE("simulating a schedule that deadlocks throws") {
  PipelineSchedule schedule = planned("1f1b", {2, 2});
  schedule.actions[0].erase(schedule.actions[0].begin());
  CHECK_THROWS_WITH(equal(schedule), says("waits forever"));
}
