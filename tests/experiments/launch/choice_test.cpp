// Checks which layout a launch chooses for the slots that are left, and when it grows back.
#include "experiments/launch/choice.hpp"

#include "tests/catch.hpp"

namespace chorale::launch {
namespace {

const std::vector<Possible> layouts{
    {.layout = "dp4", .ranks = 4, .memory_bytes = 800, .sent_bytes = 40},
    {.layout = "dp2.tp2.z1", .ranks = 4, .memory_bytes = 300, .sent_bytes = 90},
    {.layout = "dp3.z1", .ranks = 3, .memory_bytes = 400, .sent_bytes = 50},
    {.layout = "dp1.pp3", .ranks = 3, .memory_bytes = 200, .sent_bytes = 5, .bubble = 0.4},
    {.layout = "dp2", .ranks = 2, .memory_bytes = 900, .sent_bytes = 20},
    {.layout = "dp1", .ranks = 1, .memory_bytes = 1000, .sent_bytes = 0},
};

std::string chosen(const Situation& situation, std::vector<Possible> possible = layouts) {
  std::string why_not;
  const auto found = choose(possible, situation, &why_not);
  return found ? found->layout.layout : "none: " + why_not;
}

TEST_CASE("the layout that the user asked for comes first, then the one with the least work per rank") {
  CHECK(chosen({.live = 4, .asked = "dp2.tp2.z1"}) == "dp2.tp2.z1");
  CHECK(chosen({.live = 4}) == "dp4");  // the same work as dp2.tp2.z1, but fewer bytes
  CHECK(chosen({.live = 3, .asked = "dp2.tp2.z1"}) == "dp3.z1");
  CHECK(chosen({.live = 2, .asked = "dp2.tp2.z1"}) == "dp2");
  CHECK(chosen({.live = 9, .asked = "dp9"}) == "dp4");
}

TEST_CASE("a layout must fit in memory") {
  CHECK(chosen({.live = 4, .memory_bytes = 500}) == "dp2.tp2.z1");
  CHECK(chosen({.live = 3, .memory_bytes = 300}) == "dp1.pp3");
  CHECK(chosen({.live = 2, .memory_bytes = 300}) == "none: 2 layouts of 1 to 2 ranks do not fit in 300 B per rank");
}

TEST_CASE("without enough slots, or a legal layout, there is none") {
  CHECK(chosen({.live = 1, .fewest = 2}) == "none: 1 of at least 2 slots are live");
  CHECK(chosen({.live = 3, .asked = "dp4", .same_layout = true}) == "none: dp4 needs more than 3 slots (--same-layout)");
  CHECK(chosen({.live = 4, .asked = "dp4", .same_layout = true}) == "dp4");
  CHECK(chosen({.live = 4, .fewest = 4}, {layouts[2]}) == "none: no layout of 4 to 4 ranks is legal");
}

TEST_CASE("if the steps of all layouts are predicted, the fastest is chosen, even on fewer ranks") {
  std::vector<Possible> predicted = layouts;
  for (Possible& layout : predicted) layout.seconds = layout.layout == "dp2" ? 1 : 2;
  CHECK(chosen({.live = 4}, predicted) == "dp2");
  predicted[0].seconds = -1;  // if one layout is not predicted, the others' times are not used
  CHECK(chosen({.live = 4}, predicted) == "dp4");
  CHECK(choose(layouts, {.live = 4})->why.find("no predicted time") != std::string::npos);
}

TEST_CASE("equal layouts are chosen by their names, in any order of the list") {
  const std::vector<Possible> equal{{.layout = "b", .ranks = 2}, {.layout = "a", .ranks = 2}};
  CHECK(chosen({.live = 2}, equal) == "a");
  CHECK(chosen({.live = 2}, {equal[1], equal[0]}) == "a");
}

TEST_CASE("a change of layout must save more time than it costs") {
  CHECK(scaled(0.3, layouts[2], layouts[0]) == Approx(0.3 * 3 / 4));
  CHECK(scaled(0.3, {.ranks = 3, .seconds = 2}, {.ranks = 4, .seconds = 1}) == Approx(0.15));
  CHECK(pays(0.3, 0.2, 100, 5));
  CHECK(!pays(0.3, 0.2, 40, 5));
  CHECK(!pays(0.2, 0.3, 1000, 0));
  CHECK(!pays(0.3, 0.2, 0, 0));
}

}  // namespace
}  // namespace chorale::launch
