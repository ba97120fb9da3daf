// Tests the drawings of schedules. A few drawings are compared with their complete expected text. All other drawings are
// checked for properties that every correct drawing has.
#include "collectives/analysis/drawing.hpp"

#include <algorithm>

#include "tests/catch.hpp"
#include "tests/collectives/schedule/planning.hpp"
#include "tests/text.hpp"

using namespace chorale;
using test::named;

namespace {

std::vector<Schedule> drawn_plans(Collective what, const std::string& name, int size, std::int64_t count = 0,
                                  bool in_place = false) {
  return plan_all_ranks(named(what, name), Problem::even(what, count ? count : 2 * size, size, 0, in_place));
}

std::string last_round(const std::string& text) { return text.substr(text.rfind("\n\n") + 2); }

}  // namespace

TEST_CASE("a ring is drawn as in the books") {
  for (const bool in_place : {false, true})
    CHECK(draw_text(drawn_plans(Collective::all_reduce, "ring", 3, 3, in_place)) ==
          "start\n"
          "rank  a   b   c\n"
          "   0  0   0   0\n"
          "   1  1   1   1\n"
          "   2  2   2   2\n"
          "\nround 1\n"
          "rank  a     b     c     sends\n"
          "   0  0     0+2   0     c → 1\n"
          "   1  1     1     0+1   a → 2\n"
          "   2  1+2   2     2     b → 0\n"
          "\nround 2\n"
          "rank  a     b     c     sends\n"
          "   0  Σ     0+2   0     b → 1\n"
          "   1  1     Σ     0+1   c → 2\n"
          "   2  1+2   2     Σ     a → 0\n"
          "\nround 3\n"
          "rank  a     b     c     sends\n"
          "   0  Σ     0+2   Σ     a → 1\n"
          "   1  Σ     Σ     0+1   b → 2\n"
          "   2  1+2   Σ     Σ     c → 0\n"
          "\nround 4\n"
          "rank  a   b   c   sends\n"
          "   0  Σ   Σ   Σ   c → 1\n"
          "   1  Σ   Σ   Σ   a → 2\n"
          "   2  Σ   Σ   Σ   b → 0\n");
}

TEST_CASE("without sums, cells name the owners of the data, and missing data is a dot") {
  const std::string text = draw_text(drawn_plans(Collective::broadcast, "binomial_tree", 4));
  CHECK_THAT(text, says("start\nrank  a   b   c   d\n   0  0   0   0   0\n   1  ·   ·   ·   ·\n"));
  CHECK_THAT(text, says("round 1\nrank  a   b   c   d   sends\n   0  0   0   0   0   all → 2\n   1  ·   ·   ·   ·\n"));
  CHECK_THAT(text, says("   2  0   0   0   0   all → 3\n"));
  CHECK(test::times(text, "round ") == 2);
}

TEST_CASE("every all-reduce ends with the whole sum of every block on every rank, and an all-gather with every block") {
  for (const Algorithm& algorithm : all_algorithms())
    for (const int size : {2, 3, 6, 8, 11, 16}) {
      const Problem problem = Problem::even(algorithm.what, 2 * size, size);
      if (!fits(algorithm, problem)) continue;
      INFO(name_of(algorithm.what) << " " << algorithm.name << ", " << size << " ranks");
      const auto ranks = plan_all_ranks(algorithm, problem);
      const std::string text = draw_text(ranks), last = last_round(text);
      CHECK(test::times(text, "round ") == static_cast<std::size_t>(find_rounds(ranks).count));
      const auto blocks = static_cast<std::size_t>(size * size);
      if (algorithm.what == Collective::all_reduce) CHECK(test::times(last, "Σ") == blocks);
      if (algorithm.what == Collective::all_gather || algorithm.what == Collective::broadcast)
        CHECK(test::times(last, "·") + test::times(last, "…") == 0);
      if (algorithm.what == Collective::reduce_scatter) CHECK(test::times(last, "Σ") >= static_cast<std::size_t>(size));
    }
}

TEST_CASE("blocks that arrived in part, empty blocks and many blocks are drawn too") {
  CHECK_THAT(draw_text(drawn_plans(Collective::all_reduce, "one_shot", 9)), says("   8  1×   1×"));
  CHECK_THAT(draw_text(drawn_plans(Collective::all_reduce, "ring", 5, 2)), says("rank  a   b\n"));  // three blocks are empty
  auto half = drawn_plans(Collective::all_reduce, "one_shot", 2, 4);
  for (Schedule& schedule : half) {  // sends only the first element of each rank's block
    schedule.steps[0].src = {input(0, 1)};
    schedule.steps[1].src = {input(0, 1)};
    schedule.steps[1].dst = output(0, 1);
  }
  CHECK_THAT(draw_text(half), says("   0  0…   0   a → 1\n"));
  CHECK(block_name(2, 8) == "c");
  CHECK(block_name(30, 64) == "30");
}

TEST_CASE("the tooltip of a step names its peers, if it has any") {
  Schedule alone(Problem::even(Collective::all_reduce, 4, 1));
  alone.reduce({input(0, 2), input(2, 2)}, output(0, 2));
  CHECK_THAT(draw_svg({alone}, "alone", 4, {1, 1, 1}), says("<title>reduce: 8 bytes</title>"));
  const std::string ring = draw_svg(drawn_plans(Collective::all_reduce, "ring", 3, 3), "ring", 4, {1, 1, 1});
  CHECK_THAT(ring, says("<title>send to 1: 4 bytes</title>") && says("<title>recv_reduce from 2: 4 bytes</title>"));
  CHECK(test::times(ring, "from :") + test::times(ring, "to :") == 0);
}

TEST_CASE("the diagram has a lane per rank, an arrow per message, a bar per sum, and refers to nothing outside") {
  const auto ranks = drawn_plans(Collective::all_reduce, "rabenseifner", 6);
  const std::string svg = draw_svg(ranks, "a < b & c", 4, {1e-6, 1e-9, 1e-9});
  std::size_t messages = 0, sums = 0;
  for (const Schedule& schedule : ranks)
    for (const Step& step : schedule.steps) {
      messages += step.kind == Kind::send ? step.peers.size() : 0;
      sums += step.kind == Kind::recv_reduce || step.kind == Kind::reduce;
    }
  CHECK(test::times(svg, "class=\"lane\"") == 6);
  CHECK(test::times(svg, "class=\"message\"") == messages);
  CHECK(test::times(svg, "class=\"sum\"") == sums);
  CHECK_THAT(svg, says("<title id=\"title\">a &lt; b &amp; c</title>"));
  CHECK_THAT(svg, says("<desc id=\"what\">6 ranks"));
  CHECK_THAT(svg, says("prefers-color-scheme: dark"));
  CHECK(test::times(svg, "http") == 1);  // the XML namespace
  CHECK(test::times(svg, "nan") + test::times(svg, "inf") == 0);
  CHECK_THAT(draw_svg(drawn_plans(Collective::all_reduce, "ring", 1), "alone", 4, {1, 1, 1}), says("1 rank,"));
}
