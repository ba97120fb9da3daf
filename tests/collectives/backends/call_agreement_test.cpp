// Ranks exchange control messages to compare their calls, report errors and announce that they leave. These tests explore
// every order of the events on a few ranks. No rank is allowed to act on a control message of a different group. Every
// mistake must be detected. If a rank waits for a rank that has left, it must get an error.
#include "tests/catch.hpp"
#include "tests/collectives/backends/control_orders.hpp"
#include "tests/spmd.hpp"

using namespace chorale;
using namespace chorale::test::control;

namespace {

void is_right_in_every_order(const Play& play) {
  std::string wrong;
  const std::size_t states = explore(play, [&](Stage& stage) {
    for (int r = 0; r < static_cast<int>(play.scripts.size()); ++r) {
      if (!stage.gave_up(r).empty()) wrong += fmt::format("rank {} gave up: {}\n", r, stage.gave_up(r));
      if (!stage.over(r)) wrong += fmt::format("rank {} waits forever\n", r);
    }
    if (const std::size_t kept = stage.kept()) wrong += fmt::format("{} control messages are kept forever\n", kept);
    if (stage.noticed()) wrong += "a farewell was taken for different calls\n";
  });
  INFO(wrong.substr(0, 1000));
  CHECK(wrong.empty());
  CHECK(states > 100);
}

}  // namespace

TEST_CASE("a late question never causes an error in a later group", "[control]") {
  const std::vector<Act> script{join(0), call(0, 5), leave(0), join(1), call(1, 6), call(1, 7), leave(1)};
  is_right_in_every_order({.groups = {{0, 1}, {0, 1}}, .scripts = {script, script}});
}

TEST_CASE("short-lived groups never receive the control messages of a longer-lived one", "[control]") {
  const std::vector<Act> member{join(0), join(1), call(1, 5), leave(1), call(0, 6), join(2), call(2, 8), leave(2)};
  const std::vector<Act> third{join(0), call(0, 6)};
  is_right_in_every_order(
      {.groups = {{0, 1, 2}, {0, 1}, {0, 1}}, .scripts = {member, member, third}, .asks = test::thorough() ? 2 : 1});
}

TEST_CASE("a rank may run ahead of another", "[control]") {
  const std::vector<Act> root{join(0), call(0, 5, 0), call(0, 6, 0), call(0, 7, 0), call(0, 8), leave(0)};
  const std::vector<Act> other{join(0), call(0, 5, 0), call(0, 6, 0), call(0, 7, 0), call(0, 8), leave(0)};
  is_right_in_every_order({.groups = {{0, 1}}, .scripts = {root, other}});
}

TEST_CASE("messages in both directions are distinguished, also when their group is created anew", "[control]") {
  const std::vector<Act> zero{join(0),  join(1), call(1, 5, 0), join(2),       call(2, 6, 1), leave(2), leave(1),
                              leave(0), join(3), join(4),       call(4, 9, 0), leave(4),      leave(3)};
  const std::vector<Act> one{join(0),  join(1), call(1, 5, 0), join(2),       call(2, 6, 1), leave(2), leave(1),
                             leave(0), join(3), join(4),       call(4, 9, 0), leave(4),      leave(3)};
  is_right_in_every_order(
      {.groups = {{0, 1}, {0, 1}, {1, 0}, {0, 1}, {0, 1}}, .scripts = {zero, one}, .parents = {-1, 0, 0, -1, 3}});
}

TEST_CASE("ranks that wait for one another in different calls all end in an error, in every order", "[control]") {
  const auto all_give_up = [](const Play& play) {
    std::size_t ends = 0, silent = 0;
    explore(play, [&](Stage& stage) {
      ++ends;
      for (int r = 0; r < static_cast<int>(play.scripts.size()); ++r) silent += stage.gave_up(r).empty();
      CHECK(stage.kept() == 0);
    });
    CHECK(ends > 0);
    CHECK(silent == 0);
  };
  constexpr int any = 100;
  all_give_up({.groups = {{0, 1}}, .scripts = {{join(0), call(0, 5)}, {join(0), call(0, 6)}}, .asks = any});
  all_give_up({.groups = {{0, 1, 2}},
               .scripts = {{join(0), call(0, 5)}, {join(0), call(0, 6)}, {join(0), call(0, 5)}},
               .asks = any});
  // The ranks make mismatched calls in the second of two groups. At that time, control messages of the first group are still
  // in flight.
  const std::vector<Act> right{join(0), call(0, 5), leave(0), join(1), call(1, 6), call(1, 7)};
  const std::vector<Act> wrong{join(0), call(0, 5), leave(0), join(1), call(1, 6), call(1, 8)};
  all_give_up({.groups = {{0, 1}, {0, 1}}, .scripts = {right, wrong}, .asks = any});
}

TEST_CASE("a rank that waits for one that has left gets an error, in every order", "[control]") {
  const auto all_are_told = [](const Play& play, int leaver) {
    std::size_t ends = 0, silent = 0;
    explore(play, [&](Stage& stage) {
      ++ends;
      for (int r = 0; r < static_cast<int>(play.scripts.size()); ++r) silent += r != leaver && stage.gave_up(r).empty();
      CHECK(stage.gave_up(leaver).empty());
      CHECK(stage.kept() == 0);
    });
    CHECK(ends > 0);
    CHECK(silent == 0);
  };
  const std::vector<Act> leaver{join(0), call(0, 5), leave(0)}, other{join(0), call(0, 5), call(0, 6)};
  all_are_told({.groups = {{0, 1}}, .scripts = {other, leaver}}, 1);
  all_are_told({.groups = {{0, 1, 2}}, .scripts = {other, leaver, other}, .asks = 2}, 1);
  // Rank 0 waits for a message that rank 1 never sends. In the first scenario, rank 1 joins the group of two (the pair). In
  // the second scenario, rank 1 does not join the pair.
  const std::vector<Act> receiver{join(0), join(1), call(1, 5, 1), call(1, 6, 1)};
  all_are_told({.groups = {{0, 1}, {1, 0}},
                .scripts = {receiver, {join(0), join(1), call(1, 5, 1), leave(1), leave(0)}},
                .parents = {-1, 0}},
               1);
  all_are_told({.groups = {{0, 1}, {1, 0}}, .scripts = {receiver, {join(0), leave(0)}}, .parents = {-1, 0}}, 1);
}

TEST_CASE("last calls that differ are detected in every order, even if no rank waited in these calls", "[control]") {
  const std::vector<Act> one{join(0), call(0, 5), call(0, 6, 0), leave(0)},
      two{join(0), call(0, 5), call(0, 7, 1), leave(0)};
  // The ranks make the same calls, and then continue in a different group.
  const std::vector<Act> more{join(1), call(1, 8), leave(1)};
  std::vector<Act> three = one, four = two;
  three.insert(three.end(), more.begin(), more.end());
  four.insert(four.end(), more.begin(), more.end());
  for (const Play& play :
       {Play{.groups = {{0, 1}}, .scripts = {one, two}}, Play{.groups = {{0, 1}, {0, 1}}, .scripts = {three, four}}}) {
    std::size_t ends = 0, unnoticed = 0;
    explore(play, [&](Stage& stage) {
      ++ends;
      CHECK(stage.kept() == 0);
      unnoticed += stage.noticed() == 0 && stage.gave_up(0).empty() && stage.gave_up(1).empty();
    });
    CHECK(ends > 0);
    CHECK(unnoticed == 0);
  }
}
