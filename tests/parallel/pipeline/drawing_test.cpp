// Tests pipeline drawings. Small drawings are compared with expected drawings. All other drawings are checked for properties
// that every drawing must have.
#include "parallel/pipeline/drawing.hpp"

#include <algorithm>

#include "src/base/text.hpp"
#include "tests/parallel/pipeline/shapes.hpp"
#include "tests/text.hpp"

using namespace chorale;
using test::each_pipeline;
using test::planned;

namespace {

PipelineTimeline with_equal_parts(const PipelineSchedule& schedule) { return simulate(schedule, equal_parts(schedule)); }

std::string drawn(const PipelineTimeline& timeline) { return draw_text(timeline, columns_per_second(timeline)); }

std::size_t columns(const std::string& line) {
  return static_cast<std::size_t>(
      std::count_if(line.begin(), line.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

}  // namespace

TEST_CASE("pipelines are drawn as in the papers") {
  CHECK(drawn(with_equal_parts(planned("gpipe", {2, 2}))) ==
        "stage 0 │0  1           ▒0▒▒▒▒▒1▒▒▒▒│\n"
        "stage 1 │   0  1  ▒0▒▒▒▒▒1▒▒▒▒      │\n"
        "time     0              5\n");
  CHECK(drawn(with_equal_parts(planned("1f1b", {2, 2}))) ==
        "stage 0 │0  1        ▒0▒▒▒▒   ▒1▒▒▒▒│\n"
        "stage 1 │   0  ▒0▒▒▒▒1  ▒1▒▒▒▒      │\n"
        "time     0              5\n");
  CHECK(drawn(with_equal_parts(planned("zb-h1", {2, 2}))) ==
        "stage 0 │0  1     ▒0▒░0░▒1▒░1░│\n"
        "stage 1 │   0  ▒0▒1  ▒1▒░0░░1░│\n"
        "time     0              5\n");
  CHECK(drawn(with_equal_parts(planned("interleaved", {2, 2, 2}))) ==
        "stage 0 │0a  1a  0b  1b          ▒0b▒▒▒▒▒    ▒1b▒▒▒▒▒▒0a▒▒▒▒▒▒1a▒▒▒▒▒│\n"
        "stage 1 │    0a  1a  0b  ▒0b▒▒▒▒▒1b  ▒1b▒▒▒▒▒▒0a▒▒▒▒▒▒1a▒▒▒▒▒        │\n"
        "time     0               2               4               6\n");
}

TEST_CASE("every picture of a pipeline has one line per stage, all of one length, and fits a terminal") {
  each_pipeline(8, 16, [&](const std::string&, const PipelineSchedule& schedule) {
    const auto lines = split(drawn(with_equal_parts(schedule)), '\n');
    REQUIRE(static_cast<std::int64_t>(lines.size()) ==
            schedule.stages + 2);  // one line for each stage, one for the time axis, one empty text after the last newline
    for (std::int64_t stage = 0; stage < schedule.stages; ++stage) {
      CHECK(columns(lines[static_cast<std::size_t>(stage)]) == columns(lines[0]));
      CHECK(columns(lines[static_cast<std::size_t>(stage)]) <= 130);
    }
  });
}

TEST_CASE("a measured timeline can be drawn at the scale of the planned one") {
  PipelineTimeline measured = with_equal_parts(planned("1f1b", {2, 2}));
  const double scale = columns_per_second(measured);
  for (PipelineEvent& event : measured.events) {
    event.begins = 1000 + 1.2 * event.begins;
    event.ends = 1000 + 1.2 * event.ends;
  }
  measured.events[0].ends -= 0.05;
  CHECK(draw_text(measured, scale) ==
        "stage 0 │0   1         ▒0▒▒▒▒▒▒   ▒1▒▒▒▒▒│\n"
        "stage 1 │    0  ▒0▒▒▒▒▒1   ▒1▒▒▒▒▒       │\n"
        "time     0              5              10\n");
  CHECK(columns(split(drawn(measured), '\n')[0]) == 120 + 10);  // the timeline's own scale uses the maximum width
}

TEST_CASE("a pipeline without events is drawn as an empty lane") {
  CHECK(drawn(PipelineTimeline{1, 1, {}}) == "stage 0 │ │\ntime     0\n");
}

TEST_CASE("the SVG diagram has a bar per event and a lane per stage, and is self-contained") {
  const PipelineTimeline ideal = with_equal_parts(planned("zb-h1", {3, 4})),
                         other = with_equal_parts(planned("interleaved", {2, 2, 2}));
  const std::string svg = draw_svg({{"ideal", ideal}, {"a < \"b\"", other, " s"}}, "x & y");
  CHECK(test::times(svg, "class=\"lane\"") == 5);
  CHECK(test::times(svg, "class=\"bar forward\"") == 3 * 4 + 2 * 2 * 2);
  CHECK(test::times(svg, "class=\"bar weights\"") == 3 * 4);
  CHECK(test::times(svg, "</rect>") == ideal.events.size() + other.events.size());
  CHECK_THAT(svg, says("<title>x &amp; y</title>"));
  CHECK_THAT(svg, says("ideal: 3 stages, 14 long, idle 14.3 % of the time."));  // ideal pipelines have times without a unit
  CHECK_THAT(svg, says("a &lt; &quot;b&quot;: 2 stages, 7.5 s long"));
  CHECK_THAT(svg, says("<title>stage 1, backward 0b: 2 to 3 s</title>"));
  CHECK_THAT(svg, says(">time from the first pass</text>"));
  CHECK_THAT(svg, says("prefers-color-scheme: dark"));
  CHECK(test::times(svg, "http") == 1);  // only the XML namespace
  CHECK(test::times(svg, "nan") + test::times(svg, "inf\"") == 0);
}

TEST_CASE("SVG diagrams have a time axis, and the same scale if they have the same frame") {
  PipelineTimeline quick = with_equal_parts(planned("1f1b", {2, 2})), slow = quick;
  for (PipelineEvent& event : quick.events) {
    event.begins *= 0.01;
    event.ends *= 0.01;
  }
  for (PipelineEvent& event : slow.events) {
    event.begins *= 0.03;
    event.ends *= 0.03;
  }
  const auto lane_width = [](const std::string& svg) {
    const std::string lane = svg.substr(svg.find("class=\"lane\""));
    return std::stod(lane.substr(lane.find("width=\"") + 7));
  };
  for (const double width : {380.0, 1200.0}) {
    const PipelineFrame frame{.width = width, .seconds = slow.seconds(), .headline = false};
    const std::string one = draw_svg({{"measured", quick, " s"}}, "quick", frame),
                      other = draw_svg({{"measured", slow, " s"}}, "slow", frame);
    CHECK(std::abs(lane_width(other) / lane_width(one) - 3) < 0.01);
    CHECK(one.substr(one.find("class=\"axis\"")) == other.substr(other.find("class=\"axis\"")));
    CHECK_THAT(one, says(">0</text>") && says(">100 ms</text>") && says(">200 ms</text>"));
    CHECK(test::times(one, ">quick</text>") == 0);  // the title is on the page, not in the drawing
    CHECK_THAT(one, says("viewBox=\"0 0 " + std::to_string(int(width))));
  }
  const std::string own = draw_svg({{"ideal", with_equal_parts(planned("1f1b", {2, 2}))}}, "its own scale");
  CHECK_THAT(own, says(">time, in forward passes</text>") && says(">1</text>") && says(">its own scale</text>"));
  CHECK(lane_width(own) > 1000);
}
