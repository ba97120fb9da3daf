// Tests find_flaw, which proves that a pipeline schedule is correct. The proof must fail if any action is missing,
// duplicated or misplaced.
#include "parallel/pipeline/check.hpp"

#include <algorithm>
#include <numeric>
#include <random>

#include "tests/parallel/pipeline/shapes.hpp"

using namespace chorale;
using test::each_pipeline;
using test::planned;

TEST_CASE("find_flaw finds no flaw in any pipeline schedule") {
  int proved = 0;
  each_pipeline(8, 16, [&](const std::string&, const PipelineSchedule& schedule) {
    CHECK(find_flaw(schedule) == "");
    ++proved;
  });
  CHECK(proved == 5 * 8 * 16 + 2 * (16 + 8 + 5 + 4 + 3 + 2 + 2 + 2));  // interleaved schedules: 2 or 3 chunks, p divides m
}

TEST_CASE("the largest number of activations in flight on each stage matches the papers") {
  each_pipeline(8, 16, [&](const std::string& name, const PipelineSchedule& schedule) {
    const std::int64_t p = schedule.stages, m = schedule.micro_batches, v = schedule.chunks;
    const auto most = most_in_flight(schedule);
    REQUIRE(static_cast<std::int64_t>(most.size()) == p);
    for (std::int64_t r = 0; r < p; ++r) {
      const std::int64_t found = most[static_cast<std::size_t>(r)];
      if (name == "naive") CHECK(found == 1);
      if (name == "gpipe") CHECK(found == m);
      if (name == "1f1b") CHECK(found == std::min(m, p - r));
      if (name == "interleaved") CHECK(found == std::min(2 * (p - r - 1) + (v - 1) * p + 1, m * v));
      if (name == "zb-h1") CHECK(found == std::min(m, p));
      if (name == "v-min") CHECK(found <= 2 * (p + 4) / 3);  // `found` counts chunks; a chunk is half of a stage
    }
    const double fullest = static_cast<double>(*std::ranges::max_element(most)) / static_cast<double>(v);
    const double stated = find_pipeline_schedule(name)->in_flight(schedule);
    CHECK(fullest <= stated + 1e-9);
    CHECK(fullest > stated - 0.7);
  });
}

std::size_t position_of(const PipelineSchedule& schedule, const StagedAction& of) {
  const auto& actions = schedule.actions[static_cast<std::size_t>(of.stage)];
  return static_cast<std::size_t>(std::ranges::find(actions, of.action) - actions.begin());
}

// Lets a stage begin its first `number` actions. On other stages, runs only the actions on which the first `number` actions
// depend.
void run_least(const PipelineSchedule& schedule, std::int64_t stage, std::size_t number, std::vector<std::size_t>& begun) {
  for (std::size_t& mine = begun[static_cast<std::size_t>(stage)]; mine < number; ++mine) {
    const auto source = source_of(schedule, {stage, schedule.actions[static_cast<std::size_t>(stage)][mine]});
    if (source && source->stage != stage) run_least(schedule, source->stage, position_of(schedule, *source) + 1, begun);
  }
}

// Visits each result that a stage has sent up to action `last`. The visitor gets the index of the action that produced the
// result. The visitor also learns whether the action that receives the result has begun.
template <class Visit>
void each_sent(const PipelineSchedule& schedule, std::int64_t stage, std::size_t last, const std::vector<std::size_t>& begun,
               Visit visit) {
  for (std::size_t i = 0; i <= last; ++i)
    if (const auto taker = taker_of(schedule, {stage, schedule.actions[static_cast<std::size_t>(stage)][i]});
        taker && taker->stage != stage)
      visit(i, begun[static_cast<std::size_t>(taker->stage)] > position_of(schedule, *taker));
}

TEST_CASE("a result is known to be read once all executions have read it") {
  each_pipeline(4, 6, [&](const std::string&, const PipelineSchedule& schedule) {
    std::int64_t wrong = 0;
    for (std::int64_t stage = 0; stage < schedule.stages; ++stage) {
      const std::vector<std::size_t> latest = read_at_latest(schedule, stage);
      for (std::size_t at = 0; at < latest.size(); ++at) {
        std::vector<std::size_t> begun(schedule.actions.size(), 0);
        run_least(schedule, stage, at + 1, begun);
        each_sent(schedule, stage, at, begun, [&](std::size_t i, bool is_read) { wrong += is_read != (latest[i] <= at); });
      }
    }
    CHECK(wrong == 0);
  });
}

TEST_CASE("whatever the speed of the stages, no result is read later than known") {
  std::mt19937 random(1);
  each_pipeline(4, 6, [&](const std::string&, const PipelineSchedule& schedule) {
    std::vector<std::vector<std::size_t>> latest;
    for (std::int64_t stage = 0; stage < schedule.stages; ++stage) latest.push_back(read_at_latest(schedule, stage));
    std::int64_t late = 0;
    for (int order = 0; order < 10; ++order) {
      std::vector<std::size_t> begun(schedule.actions.size(), 0), ended = begun;
      std::vector<std::int64_t> busy(schedule.actions.size());
      std::iota(busy.begin(), busy.end(), 0);
      while (!busy.empty()) {
        const std::size_t pick = random() % busy.size(), me = static_cast<std::size_t>(busy[pick]);
        const std::int64_t stage = busy[pick];
        if (begun[me] == ended[me]) {
          const auto source = source_of(schedule, {stage, schedule.actions[me][begun[me]]});
          if (source && ended[static_cast<std::size_t>(source->stage)] <= position_of(schedule, *source)) continue;
          ++begun[me];
        } else {
          each_sent(schedule, stage, ended[me], begun,
                    [&](std::size_t i, bool is_read) { late += !is_read && latest[me][i] <= ended[me]; });
          if (++ended[me] == schedule.actions[me].size()) busy.erase(busy.begin() + static_cast<std::ptrdiff_t>(pick));
        }
      }
    }
    CHECK(late == 0);
  });
}

// plan_memory() plans two micro-batches per stage.
TEST_CASE("more than two micro-batches per stage add no results on their way, unless all forward passes come first") {
  const auto most_unread = [](const PipelineSchedule& schedule, std::int64_t stage) {
    const std::vector<std::size_t> latest = read_at_latest(schedule, stage);
    const std::vector<std::size_t> none(schedule.actions.size(), 0);
    std::int64_t most = 0;
    for (std::size_t at = 0; at < latest.size(); ++at) {
      std::int64_t unread = 0;
      each_sent(schedule, stage, at, none, [&](std::size_t i, bool) { unread += latest[i] > at; });
      most = std::max(most, unread);
    }
    return most;
  };
  for (const char* name : {"naive", "gpipe", "1f1b", "interleaved", "zb-h1", "v-min"})
    for (const std::int64_t p : {2, 3, 4, 6}) {
      const std::int64_t v = std::max<std::int64_t>(find_pipeline_schedule(name)->least_chunks, 1);
      for (std::int64_t stage = 0; stage < p; ++stage) {
        INFO(name << ", stage " << stage << " of " << p);
        const std::int64_t few = most_unread(planned(name, {p, 2 * p, v}), stage);
        const std::int64_t many = most_unread(planned(name, {p, 6 * p, v}), stage);
        if (name == std::string("gpipe"))
          CHECK((few == 2 * p && many == 6 * p));
        else
          CHECK(many == few);
        if (name == std::string("naive")) CHECK(many == 1);
      }
    }
}

TEST_CASE("find_flaw reports any missing or doubled action of a pipeline") {
  each_pipeline(3, 6, [&](const std::string&, const PipelineSchedule& schedule) {
    for (std::size_t stage = 0; stage < schedule.actions.size(); ++stage)
      for (std::size_t i = 0; i < schedule.actions[stage].size(); ++i) {
        const auto at = static_cast<std::ptrdiff_t>(i);
        PipelineSchedule less = schedule, more = schedule;
        less.actions[stage].erase(less.actions[stage].begin() + at);
        CHECK_THAT(find_flaw(less), says("is missing"));
        more.actions[stage].insert(more.actions[stage].begin() + at, more.actions[stage][i]);
        CHECK_THAT(find_flaw(more), says("occurs twice"));
      }
  });
}

// Two neighboring actions can be swapped if they are independent. A forward pass and a backward pass of different
// micro-batches are independent if their messages are sent in different directions. Two actions cannot be swapped if they
// receive from the same stage or send to the same stage, because their messages would arrive in the wrong order.
TEST_CASE("find_flaw reports two swapped neighboring actions if one needs the other or both have the same peer") {
  each_pipeline(4, 8, [&](const std::string&, const PipelineSchedule& schedule) {
    if (schedule.stages == 1) return;
    for (std::size_t stage = 0; stage < schedule.actions.size(); ++stage)
      for (std::size_t i = 0; i + 1 < schedule.actions[stage].size(); ++i) {
        PipelineSchedule swapped = schedule;
        PipelineAction &a = swapped.actions[stage][i], &b = swapped.actions[stage][i + 1];
        const bool same_data = a.micro_batch == b.micro_batch && a.chunk == b.chunk;
        bool same_way = false;
        for (const auto end : {source_of, taker_of}) {
          const auto own = static_cast<std::int64_t>(stage);
          const auto of_a = end(schedule, {own, a}), of_b = end(schedule, {own, b});
          same_way |= of_a && of_b && of_a->stage == of_b->stage && of_a->stage != own;
        }
        std::swap(a, b);
        INFO(describe(swapped));
        if (same_data || same_way) CHECK(find_flaw(swapped) != "");
      }
  });
}

TEST_CASE("find_flaw names the stage and the action of a flaw") {
  PipelineSchedule late = planned("1f1b", {2, 3});
  std::swap(late.actions[1][0], late.actions[1][1]);
  CHECK(find_flaw(late) == "stage 1, B0: comes before F0, which it needs");

  PipelineSchedule overtaken = planned("gpipe", {2, 3});
  std::swap(overtaken.actions[1][0], overtaken.actions[1][1]);
  CHECK(find_flaw(overtaken) == "stage 1, F1: expects its message from stage 0, which sends the one for F0 first");

  PipelineSchedule stuck = planned("1f1b", {2, 2});  // stage 0 waits for B0 before it sends F1, which stage 1 needs first
  stuck.actions[0] = {{Pass::forward, 0}, {Pass::backward, 0}, {Pass::forward, 1}, {Pass::backward, 1}};
  stuck.actions[1] = {{Pass::forward, 0}, {Pass::forward, 1}, {Pass::backward, 0}, {Pass::backward, 1}};
  CHECK(find_flaw(stuck) == "stage 0: deadlock, it waits for a message that never comes");

  PipelineSchedule strange = planned("1f1b", {2, 2});
  strange.actions[1].push_back({Pass::weights, 0});
  CHECK(find_flaw(strange) == "stage 1, W0: is not an action of this shape");
  strange.actions[1].back() = {Pass::forward, 2};
  CHECK(find_flaw(strange) == "stage 1, F2: is not an action of this shape");
  strange.actions.pop_back();
  CHECK(find_flaw(strange) == "1 of 2 stages have a list of actions");
}

TEST_CASE("a schedule needs buffers if neighboring stages send to each other at the same time") {
  each_pipeline(8, 16, [&](const std::string& name, const PipelineSchedule& schedule) {
    const bool in_turn = name != "naive" && name != "gpipe" && schedule.stages > 1 && schedule.micro_batches > 1;
    CHECK(needs_buffers(schedule) == in_turn);
  });
}

// If a micro-batch visits each stage more than once in the forward pass, neighboring stages can send activations in both
// directions. Then some activations and gradients are sent in the same direction.
TEST_CASE("find_flaw reports a stage that expects a gradient before an activation that was sent earlier") {
  PipelineSchedule crossing({2, 2, 2});
  crossing.actions[0] = {{Pass::forward, 0, 0},  {Pass::forward, 1, 0},  {Pass::forward, 0, 1},  {Pass::forward, 1, 1},
                         {Pass::backward, 0, 1}, {Pass::backward, 0, 0}, {Pass::backward, 1, 1}, {Pass::backward, 1, 0}};
  crossing.actions[1] = {{Pass::forward, 0, 0},  {Pass::forward, 1, 0}, {Pass::forward, 0, 1},  {Pass::backward, 0, 1},
                         {Pass::backward, 0, 0}, {Pass::forward, 1, 1}, {Pass::backward, 1, 1}, {Pass::backward, 1, 0}};
  CHECK(find_flaw(crossing) == "stage 1, B0a: expects its message from stage 0, which sends the one for F1b first");
}

TEST_CASE("a stage sends one message per pass whose result is needed on another stage") {
  each_pipeline(6, 12, [&](const std::string&, const PipelineSchedule& schedule) {
    std::vector<std::int64_t> expected(static_cast<std::size_t>(schedule.stages), 0);
    for (std::int64_t part = 0; part + 1 < schedule.parts(); ++part) {
      const std::int64_t before = schedule.place(part).stage, after = schedule.place(part + 1).stage;
      if (before == after) continue;
      expected[static_cast<std::size_t>(before)] += schedule.micro_batches;  // activations
      expected[static_cast<std::size_t>(after)] += schedule.micro_batches;   // gradients
    }
    CHECK(messages_sent(schedule) == expected);
  });
}
