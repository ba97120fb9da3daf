// Tests where the data of sends lie in a stage (mapped/stage_layout.hpp): every message has its data there when it is sent,
// and nothing is copied twice.
#include "collectives/backends/mapped/stage_layout.hpp"

#include <numeric>

#include <chorale/algorithm.hpp>
#include "src/base/index.hpp"
#include "tests/catch.hpp"
#include "tests/collectives/schedule/planning.hpp"

namespace chorale::test {
namespace {

// Copies to a stage as the sends of a schedule do, if no step has changed the data, and checks what the messages then hold.
std::string trouble_of(const Schedule& schedule, const mapped::StagingRule& staging) {
  const mapped::StageLayout layout(schedule, staging);
  std::vector<std::int64_t> stage(index(layout.lines * staging.line_elements), -1);
  std::vector<std::size_t> filler(stage.size());  // the step that fills this place
  const auto element = [](const Range& range, std::int64_t i) {
    return (static_cast<std::int64_t>(range.place) << 40) + range.first + i;
  };
  for (std::size_t s = 0; s < schedule.steps.size(); ++s) {
    const chorale::Step& step = schedule.steps[s];
    const mapped::StageLayout::Message& message = layout.messages[s];
    if (step.kind != chorale::Kind::send || step.src[0].count > staging.most_elements) {
      if (message.at >= 0) return "a long message is in the stage";
      continue;
    }
    for (std::int64_t i = 0; i < message.fill.count; ++i) {
      stage.at(index(message.fill_at + i)) = element(message.fill, i);
      filler[index(message.fill_at + i)] = s;
    }
    for (std::int64_t i = 0; i < step.src[0].count; ++i) {
      const std::size_t at = index(message.at + i);
      if (stage.at(at) != element(step.src[0], i)) return "a message's data are not in the stage";
      if (filler[at] != s && !schedule.steps[filler[at]].after.empty())
        return "a message can be sent before another send, which must wait, has filled its place";
      for (std::size_t between = filler[at]; between < s; ++between)
        if (schedule.steps[between].kind != chorale::Kind::send &&
            overlap(schedule.problem(), schedule.steps[between].dst, {step.src[0].place, step.src[0].first + i, 1}))
          return "data change after they were staged";
    }
  }
  return "";
}

}  // namespace

TEST_CASE("every staged message of every algorithm finds its data in the stage") {
  for (const Algorithm& algorithm : all_algorithms())
    for (const int size : {2, 3, 8})
      for (const bool in_place : {false, true})
        for (const std::int64_t most : {std::int64_t{100}, std::int64_t{1} << 40}) {
          const Problem problem = Problem::even(algorithm.what, 123 * size, size, size / 2, in_place);
          if (!fits(algorithm, problem)) continue;
          for (const Schedule& schedule : plan_all_ranks(algorithm, problem)) {
            INFO(algorithm.name << " of " << name_of(algorithm.what) << " on " << size << " ranks");
            REQUIRE(trouble_of(schedule, {.line_elements = 14, .most_elements = most}) == "");
          }
        }
}

TEST_CASE("a stage has the data that a rank sends, once, and nothing else") {
  const auto lines = [](Collective what, const char* algorithm, std::int64_t count, int size, bool in_place) {
    std::int64_t most = 0;
    for (const Schedule& schedule : plan_all_ranks(named(what, algorithm), Problem::even(what, count, size, 0, in_place)))
      most = std::max(most, mapped::StageLayout(schedule, {.line_elements = 14}).lines);
    return most;
  };
  CHECK(lines(Collective::broadcast, "direct", 140, 8, true) == 10);  // one copy for seven receivers
  for (const bool in_place : {false, true}) {
    CHECK(lines(Collective::reduce_scatter, "direct", 8 * 140, 8, in_place) <= 71);  // not the rank's own block
    CHECK(lines(Collective::all_gather, "direct", 8 * 140, 8, in_place) == 10);
  }
  CHECK(lines(Collective::all_reduce, "one_shot", 140, 8, false) == 10);
}

}  // namespace chorale::test
