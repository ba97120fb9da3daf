// Tests placements. A pipeline's placement determines which part of the model (a range of layers) each chunk of each stage
// computes. No other code decides where a part is computed.
#include "parallel/pipeline/check.hpp"
#include "parallel/pipeline/simulate.hpp"
#include "tests/catch.hpp"

namespace chorale {
namespace {

const Placement& v_shaped = *find_pipeline_schedule("v-min")->placement;  // stage 0 has the first and the last part

// Schedules all forward passes and then all backward passes, one chunk after another.
PipelineSchedule all_forward_first(const PipelineShape& shape) {
  PipelineSchedule schedule(shape);
  for (std::int64_t stage = 0; stage < shape.stages; ++stage) {
    for (std::int64_t chunk = 0; chunk < shape.chunks; ++chunk)
      for (std::int64_t k = 0; k < shape.micro_batches; ++k) schedule.forward(stage, k, chunk);
    for (std::int64_t chunk = shape.chunks; chunk-- > 0;)
      for (std::int64_t k = 0; k < shape.micro_batches; ++k) schedule.backward(stage, k, chunk);
  }
  return schedule;
}

TEST_CASE("every placement is one-to-one, and a stage's chunks are in the model's order") {
  for (const Placement* placement : {&around, &v_shaped})
    for (const std::int64_t stages : {1, 2, 3, 4}) {
      const PipelineShape shape{stages, 1, 2, placement};
      for (std::int64_t part = 0; part < shape.parts(); ++part) {
        const PartPlace place = shape.place(part);
        CHECK(shape.part(place.stage, place.chunk) == part);
      }
      for (std::int64_t stage = 0; stage < stages; ++stage) CHECK(shape.part(stage, 0) < shape.part(stage, 1));
    }
}

TEST_CASE("planned schedules have the placement of their row in the table of schedules") {
  for (const PipelineAlgorithm& row : all_pipeline_schedules())
    CHECK(row.plan({2, 4, row.least_chunks}).placement == row.placement);
}

TEST_CASE("a V-shaped schedule is proved, and its turn needs no message") {
  for (const std::int64_t stages : {2, 3, 4}) {
    const PipelineShape v{stages, 3, 2, &v_shaped};
    const PipelineSchedule schedule = all_forward_first(v);
    CHECK(find_flaw(schedule) == "");
    const auto sent = messages_sent(schedule);
    CHECK(sent.front() == 2 * 3);  // stage 0 has the first and last part, so it has only one neighbor
    CHECK(sent.back() == 2 * 3);   // the last stage has both middle parts of the model, so it sends no message between them
    CHECK(simulate(schedule, equal_parts(v)).seconds() > 0);
    CHECK(taker_of(v, {stages - 1, {Pass::forward, 0, 0}})->stage == stages - 1);
  }
}

}  // namespace
}  // namespace chorale
