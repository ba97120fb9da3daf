// The kinds of charts in the report. Each kind converts plain data to SVG.
//
//   LineChart   series over a linear or logarithmic axis, with intervals. Limits, ideals and gray lines are behind them.
//               It also draws dots with their names beside them, such as runs by memory and speed, and vertical marks at
//               events, such as the death of a rank
//   BarChart    horizontal stacked bars, one per rank or run, with an interval at the bar's end. Bars without length are
//               left out
//   CellChart   a table of colored cells: the color shows an amount, or one of several series
//
// A chart can be drawn at any width, with text of the same size. The page draws each chart twice and shows the drawing that
// fits the window. Phones get a narrow drawing; laptops get a drawing of half or full page width. A value appears when the
// pointer is on its mark (an SVG <title>). The tables of the page have the same values for keyboards and screen readers.
#pragma once
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "experiments/common/scale.hpp"
#include "experiments/report/canvas.hpp"
#include "experiments/report/looks.hpp"

namespace chorale::report {

inline constexpr double absent = std::numeric_limits<double>::quiet_NaN();

inline constexpr double narrow_width = 380, half_width = 600, whole_width = 1200;  // widths of drawings

struct ChartAxis {
  std::string name;
  Unit unit = Unit::plain;
  Scale::Spacing spacing = Scale::Spacing::linear;
  bool from_zero = false;
  std::vector<double> marks;  // tick positions; empty: round values
};

struct Point {
  double x = 0, y = 0;
  double low = absent, high = absent;  // the ends of an interval; NaN if there is none
  std::string name = {};               // the name of a dot
};

//   series   in the look of its series, with marks          limit, model   dashed, without marks
//   hollow   a second measure of a series: hollow marks     other          thin, gray, not in the legend
//   dots     no line: each point has its own name
//   events   no line: a vertical mark at the x of each point, which has its own name; y has no meaning
struct Line {
  enum class Kind { series, hollow, dots, events, limit, model, other };
  std::string name;
  std::vector<Point> points;
  Kind kind = Kind::series;
  std::string series = {};  // the series that gives the line its look; if it is "", the line's own name
};

struct LineChart {
  std::string title, description;
  ChartAxis x, y;
  std::vector<Line> lines;
  std::string hollow = {};  // meaning of hollow marks, for the legend
  std::string note = {};    // short text above the plot, on the right
};

struct Bar {
  std::string name;
  std::vector<double> parts;           // the length of each part
  double low = absent, high = absent;  // the ends of an interval of the total length; NaN if there is none
  bool outlined = false;               // a prediction, drawn below its measurement
};

struct BarChart {
  std::string title, description;
  ChartAxis axis;
  std::vector<std::string> parts;  // the names of the parts, for the legend; a single part is not in the legend
  std::vector<Bar> bars;
};

struct Cell {
  std::string words, about;  // the text in the cell, and its tooltip
  std::string series = {};   // the series that gives the cell its look; if it is "", the cell shows an amount
  double strength = 0;       // the amount, from 0 to 1
};

struct CellChart {
  std::string title, description;
  std::string row_name, column_name;
  std::vector<std::string> rows, columns;
  std::vector<std::vector<Cell>> cells;
  std::vector<std::pair<std::string, std::string>> series;  // for the legend: words in the cells, names of the series
  std::vector<std::pair<double, std::string>> scale = {};   // amounts (Cell::strength) in the legend, with their names
};

// The parts of bars are not series of the page. In every chart the parts have the looks 0, 1, 2, ….
std::string draw(const LineChart& chart, Looks& looks, double width = half_width);
std::string draw(const BarChart& chart, Looks& looks, double width = half_width);
std::string draw(const CellChart& chart, Looks& looks, double width = half_width);

// A picture of the page: a caption, and a function that draws SVG of any width.
struct Drawing {
  std::string caption;
  std::function<std::string(Looks& looks, double width)> at;
};

template <class Chart>
Drawing drawing_of(Chart chart) {
  std::string caption = chart.title;
  return {std::move(caption), [chart = std::move(chart)](Looks& looks, double width) { return draw(chart, looks, width); }};
}

// Selects at most `most` points (but at least four), so that the shape of the curve is preserved. Keeps the first and the
// last point, and the lowest and highest point of each interval between them.
std::vector<Point> thinned(const std::vector<Point>& points, std::size_t most);

}  // namespace chorale::report
