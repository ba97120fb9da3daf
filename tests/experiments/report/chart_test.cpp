// Tests charts of ordinary data and of edge cases, such as one point, equal values, no data, NaN, and names with markup.
#include "experiments/report/chart.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "src/base/text.hpp"
#include "tests/catch.hpp"
#include "tests/text.hpp"

using namespace chorale::report;
using chorale::Scale, chorale::Unit, chorale::test::times;

namespace {

template <class Chart>
std::string draw(const Chart& chart, double width = half_width) {
  Looks looks;
  return chorale::report::draw(chart, looks, width);
}

void require_well_drawn(const std::string& svg) {
  INFO(svg);
  CHECK_THAT(svg, says("<title>"));
  CHECK_THAT(svg, says("<desc>"));
  CHECK_THAT(svg, says("role=\"img\""));
  CHECK(times(svg, "<svg") == times(svg, "</svg>"));
  for (const char* bad : {"\"nan", "\"inf", " nan", " -nan", " inf", "Mnan", "Lnan", "<script", "http"})
    CHECK(times(svg, bad) == 0);
}

LineChart lines(std::vector<Line> of, Scale::Spacing spacing = Scale::Spacing::linear) {
  return {"a <script> & b",
          "lines",
          {.name = "x", .spacing = spacing},
          {.name = "y", .unit = Unit::seconds, .spacing = spacing},
          std::move(of)};
}

}  // namespace

TEST_CASE("line charts draw finite values, and break where a value is missing") {
  const double nothing = std::nan("");
  for (const auto spacing : {Scale::Spacing::linear, Scale::Spacing::logarithmic, Scale::Spacing::symmetric}) {
    require_well_drawn(draw(lines({}, spacing)));
    require_well_drawn(draw(lines({{"one", {{1, 1}}}}, spacing)));
    require_well_drawn(draw(lines({{"equal", {{1, 5}, {2, 5}, {3, 5}}}}, spacing)));
    require_well_drawn(draw(lines({{"nothing", {{1, nothing}, {nothing, 2}}}}, spacing)));
    require_well_drawn(draw(lines({{"zero", {{0, 0}, {1, -1}}}}, spacing)));
  }
  const std::string gap = draw(lines({{"gap", {{1, 1}, {2, 2}, {3, nothing}, {4, 4}, {5, 5}}}}));
  const std::size_t path = gap.find("class=\"line s0\"");
  CHECK(times(gap.substr(path, gap.find(">", path) - path), "M") == 2);
}

TEST_CASE("every kind of chart can be drawn at every width, and shows its values to a pointer") {
  const LineChart line = lines({{"a & b", {{1, 0.25, 0.2, 0.3}, {2, 0.5}}}, {"gray", {{1, 1}}, Line::Kind::other}});
  BarChart bars;
  bars.title = "bars";
  bars.description = "one";
  bars.axis.unit = Unit::seconds;
  bars.parts = {"forward", "backward"};
  const std::string name = "a name without room beside its bar on a phone";
  bars.bars = {{.name = name, .parts = {1, 3}, .low = 3.5, .high = 4.5}};
  CellChart cells{.title = "cells", .description = "one", .row_name = "row", .column_name = "column"};
  cells.rows = {"r"};
  cells.columns = {"1"};
  cells.cells = {{{"A", "the value of the cell", "one"}}};
  for (const double width : {narrow_width, half_width, whole_width}) {
    for (const std::string& svg : {draw(line, width), draw(bars, width), draw(cells, width)}) {
      require_well_drawn(svg);
      CHECK_THAT(svg, says("viewBox=\"0 0 " + std::to_string(int(width)) + " "));
    }
    CHECK_THAT(draw(line, width), says("<title>a &amp; b, x 1: 250 ms (200 ms to 300 ms)</title>"));
    CHECK_THAT(draw(line, width), says("<title>a &amp; b, x 2: 500 ms</title>"));
    CHECK_THAT(draw(line, width), says("<title>gray</title>"));
    CHECK(times(draw(line, width), "class=\"hover\"") == 2);  // gray lines show only their names on hover
    CHECK_THAT(draw(bars, width), says("<title>" + name + ", backward: 3 s</title>"));
    CHECK_THAT(draw(bars, width), says("<title>" + name + ": 3.5 s to 4.5 s</title>"));
    CHECK_THAT(draw(cells, width), says("<title>the value of the cell</title>"));
  }
  CHECK_THAT(draw(bars, narrow_width), says(">" + name + "</text>"));  // the name is above the bar
}

TEST_CASE("series differ without color: by their dashes and their marks") {
  const auto distinct = [](std::vector<std::string> all) { return std::set<std::string>(all.begin(), all.end()).size(); };
  std::vector<std::string> by_shape, by_color;
  for (std::size_t s = 0; s < series_looks; ++s) {
    const std::string dash = line_look(s).substr(line_look(s).find('"', 7) + 1);
    by_shape.push_back(dash + mark(s, 0, 0).substr(mark(s, 0, 0).find(" d=")));
    by_color.push_back(color_of(s) + dash);
    CHECK(times(patterns(), "id=\"hatch" + std::to_string(s) + "\"") == 1);
  }
  CHECK(distinct(by_shape) == series_looks);
  CHECK(distinct(by_color) == series_looks);
}

TEST_CASE("a series has one look in all charts of a page, whatever its place in them") {
  Looks looks;
  const LineChart one = lines({{"ring", {{1, 1}, {2, 2}}}, {"tree", {{1, 2}, {2, 1}}}});
  const LineChart other = lines({{"tree", {{1, 2}, {2, 1}}}, {"direct", {{1, 3}}}, {"ring", {{1, 1}, {2, 2}}}});
  CellChart cells{.title = "cells", .description = "one", .row_name = "row", .column_name = "column"};
  cells.rows = {"r"};
  cells.columns = {"1"};
  cells.cells = {{{"A", "the value", "direct"}}};
  cells.series = {{"A", "direct"}};
  const std::string first = draw(one, looks), second = draw(other, looks, narrow_width), third = draw(cells, looks);
  const auto look_in = [](const std::string& svg, const std::string& name) {
    const std::size_t begins = svg.rfind("<path ", svg.find("<title>" + name + "</title></path>"));
    return svg.substr(begins, svg.find(" d=", begins) - begins);
  };
  CHECK(look_in(first, "ring") == "<path " + line_look(0));
  CHECK(look_in(second, "ring") == look_in(first, "ring"));
  CHECK(look_in(second, "tree") == look_in(first, "tree"));
  CHECK(look_in(second, "direct") == "<path " + line_look(2));
  CHECK_THAT(third, says("url(#hatch2)"));
}

TEST_CASE("dots have their names beside them where there is room, and hollow marks are in the legend once") {
  LineChart chart = lines({{"front", {{1, 1}, {3, 3}}, Line::Kind::limit}});
  chart.lines.push_back({"dots", {{1, 1, absent, absent, "dp1"}, {3, 3, 2.5, 3.5, "a & b"}}, Line::Kind::dots});
  std::string svg = draw(chart);
  require_well_drawn(svg);
  CHECK(times(svg, "class=\"dot\"") == 2);
  CHECK(times(svg, "class=\"interval quiet\"") == 1);
  CHECK_THAT(svg, says("class=\"beside\">dp1</text>"));
  CHECK_THAT(svg, says("<title>a &amp; b, x 3: 3 s (2.5 s to 3.5 s)</title>"));
  for (int i = 0; i < 40; ++i) chart.lines.back().points.push_back({2, 2, absent, absent, "here as well"});
  const std::size_t named = times(draw(chart), "class=\"beside\"");
  CHECK((named > 2 && named <= 6));  // no name may cover another name or a dot
  chart = lines({{"a", {{1, 1}, {2, 2}}}, {"held-out loss of a", {{1, 1}, {2, 1}}, Line::Kind::hollow, "a"}});
  chart.hollow = "held-out loss";
  chart.note = "a < note";
  svg = draw(chart);
  CHECK(times(svg, "class=\"hollow s0\"") == 2);
  CHECK(times(svg, ">held-out loss</text>") == 1);
  CHECK_THAT(svg, says(">a &lt; note</text>"));
}

TEST_CASE("a picture as a file needs nothing from the page") {
  const LineChart chart = lines({{"one", {{1, 1}, {2, 2}}}});
  CellChart cells{.title = "cells", .description = "one", .row_name = "row", .column_name = "column"};
  cells.rows = {"r"};
  cells.columns = {"1"};
  cells.cells = {{{"A", "the value", "direct"}}};
  for (const std::string& svg : {as_file(draw(chart)), as_file(draw(cells))}) {
    CHECK(svg.starts_with("<svg "));
    CHECK_THAT(svg, says("xmlns=\"http://www.w3.org/2000/svg\" width=\"600\" height=\""));
    CHECK(times(svg, "var(") == 0);
    CHECK(times(svg, "<style>") == 1);
    CHECK(times(svg, "prefers-color-scheme") == 0);
    CHECK((times(svg, "url(#hatch0)") > 0) == (times(svg, "id=\"hatch0\"") > 0));
  }
}

TEST_CASE("long lines are thinned but keep their ends and their peaks") {
  std::vector<Point> points;
  for (int i = 0; i < 10000; ++i) points.push_back({double(i), i == 4321 ? 50.0 : std::sin(i / 1000.0)});
  const auto kept = thinned(points, 160);
  CHECK(kept.size() <= 160);
  CHECK((kept.front().x == 0 && kept.back().x == 9999));
  CHECK(std::any_of(kept.begin(), kept.end(), [](const Point& p) { return p.y == 50; }));
  CHECK(std::is_sorted(kept.begin(), kept.end(), [](const Point& a, const Point& b) { return a.x < b.x; }));
  CHECK(thinned({{1, 1}, {2, 2}}, 160).size() == 2);
}

TEST_CASE("the length of a bar is the sum of its parts") {
  BarChart chart;
  chart.title = "bars";
  chart.description = "two";
  chart.axis.unit = Unit::seconds;
  chart.parts = {"a & b", "c"};
  require_well_drawn(draw(chart));
  chart.bars = {{.name = "first", .parts = {1, 3}}, {.name = "<second>", .parts = {2, absent}, .low = 1.5, .high = 2.5}};
  const std::string svg = draw(chart);
  require_well_drawn(svg);
  CHECK(times(svg, "class=\"bar s") == 3 + 2);  // three bar segments and two marks in the legend
  CHECK(times(svg, "class=\"whisker\"") == 1);
  CHECK_THAT(svg, says("first, a &amp; b: 1 s"));
  CHECK_THAT(svg, says("&lt;second&gt;"));
  CHECK_THAT(svg, says(">4 s</text>"));
  chart.bars = {{.name = "none", .parts = {0, 0}}, {.name = "unknown", .parts = {absent, -1}}};
  require_well_drawn(draw(chart));
  for (const char* nothing : {"none", "unknown", "bar s0"}) CHECK(times(draw(chart), nothing) == 0);
}

TEST_CASE("cells show a choice or an amount, and a chart without cells is well drawn") {
  CellChart chart{.title = "cells",
                  .description = "which",
                  .row_name = "row",
                  .column_name = "column",
                  .rows = {"r"},
                  .columns = {"1", "2"}};
  chart.cells = {{{"A", "first", "one"}, {"4 KiB", "second", "", 1.0}}};
  chart.series = {{"A", "one"}};
  const std::string svg = draw(chart);
  require_well_drawn(svg);
  CHECK_THAT(svg, says("url(#hatch0)"));
  CHECK_THAT(svg, says("class=\"on_strong\""));
  CHECK(times(svg, "class=\"heat\"") == 1);
  chart.scale = {{0, "none"}, {1, "most"}};
  CHECK(times(draw(chart), "class=\"heat\"") == 1 + 2);
  CHECK_THAT(draw(chart), says(">most</text>"));
  chart.rows.clear();
  chart.columns.clear();
  chart.cells.clear();
  require_well_drawn(draw(chart));
}

TEST_CASE("text is cut between letters") {
  CHECK(fitted("short", 100) == "short");
  const std::string cut = fitted("äöüäöüäöüäöü", 50);
  CHECK(text_width(cut) <= 50);
  CHECK(cut.ends_with("…"));
  CHECK((static_cast<unsigned char>(cut[cut.size() - 4]) & 0xC0) == 0x80);  // the text ends with a complete UTF-8 character
}

TEST_CASE("events have marks at their x, with their names where there is room") {
  const auto with_events = [](std::vector<Point> events) {
    LineChart chart = lines({{"loss", {{0, 5}, {100, 1}}}});
    chart.lines.push_back({"restarts & more", std::move(events), Line::Kind::events});
    return chart;
  };
  const auto at = [](double x, const std::string& name) { return Point{.x = x, .y = absent, .name = name}; };
  const LineChart chart = with_events({at(20, "died: rank 1, a & b"), at(80, "resized, c"), at(std::nan(""), "nowhere")});
  for (const double width : {narrow_width, half_width, whole_width}) {
    const std::string svg = draw(chart, width);
    require_well_drawn(svg);
    CHECK(times(svg, "<path class=\"event\"") == 3);  // two marks, and the sample in the legend
    CHECK_THAT(svg, says("<title>died: rank 1, a &amp; b, x 20</title>"));
    CHECK_THAT(svg, says("<title>resized, c, x 80</title>"));
    CHECK_THAT(svg, says(">restarts &amp; more</text>"));
    CHECK_THAT(svg, says("class=\"beside\">died: rank 1, a &amp; b</text>"));
  }
  CHECK(times(draw(with_events({})), "event") == 0);
  CHECK(times(draw(with_events({})), "restarts") == 0);

  const std::string long_name = "died: rank 1, a layout whose name has no room between the marks of two events";
  const std::string close = draw(with_events({at(20, long_name), at(45, long_name), at(70, long_name)}));
  CHECK(times(close, "class=\"beside\">died: rank 1</text>") == 3);
  const std::string together = draw(with_events({at(50, "d"), at(50.1, "a"), at(50.2, "b"), at(50.3, "c"), at(50.4, "e")}));
  CHECK(times(together, "<path class=\"event\"") == 2);
  CHECK_THAT(together, says("class=\"beside\">5 events</text>"));
  CHECK_THAT(together, says("<title>5 events, x 50 to 50.4: d; a; b; c; and 1 more</title>"));
}

TEST_CASE("many events neither cover the curves nor each other") {
  LineChart chart = lines({{"loss", {{0, 5}, {100, 1}}}});
  Line events{.name = "restarts", .points = {}, .kind = Line::Kind::events};
  for (int i = 0; i < 1000; ++i) events.points.push_back({.x = i * 0.1, .y = absent, .name = "died"});
  chart.lines.push_back(std::move(events));
  for (const double width : {narrow_width, half_width, whole_width}) {
    const std::string svg = draw(chart, width);
    require_well_drawn(svg);
    CHECK(times(svg, "<path class=\"event\"") > 12);
    CHECK(times(svg, "<path class=\"event\"") < static_cast<std::size_t>(width / 10) + 2);
    CHECK(times(svg, "V280\"/>") == 0);  // no mark reaches the bottom of the plot
    CHECK(times(svg, "class=\"beside\"") == 0);
  }
}
