// The few kinds of chart that the report has, each from plain data to SVG.
//
//   LineChart   series over a linear or logarithmic axis, with intervals; behind them limits, ideals and unnamed lines
//   BarChart    lying bars, stacked of parts, one a rank or a run, with an interval at their end
//   CellChart   a table of coloured cells: how much, or which of several
//
// All are 600 wide: two beside each other on a laptop, one that is scrolled sideways in its own frame on a telephone.
#pragma once
#include <limits>
#include <string>
#include <vector>

#include "experiments/report/canvas.hpp"
#include "experiments/report/scale.hpp"

namespace chorale::report {

inline constexpr double absent = std::numeric_limits<double>::quiet_NaN();

struct Axis {
  std::string name;
  Unit unit = Unit::plain;
  Scale::Spacing spacing = Scale::Spacing::linear;
  bool from_zero = false;
  std::vector<double> marks;  // where they shall be, if not at round values
};

struct Point {
  double x = 0, y = 0;
  double low = absent, high = absent;  // of an interval
};

struct Line {
  enum class Kind { series, limit, other };  // limit: dotted, without marks; other: thin and grey, and not in the legend
  std::string name;
  std::vector<Point> points;
  std::size_t look = 0;
  Kind kind = Kind::series;
};

struct LineChart {
  std::string title, description;
  Axis x, y;
  std::vector<Line> lines;
};

struct Bar {
  std::string name;
  std::vector<double> parts;
  double low = absent, high = absent;
  bool outlined = false;  // what was predicted, below what was measured
};

struct BarChart {
  std::string title, description;
  Axis axis;
  std::vector<std::string> parts;  // with one part alone there is no legend
  std::vector<Bar> bars;
};

struct Cell {
  std::string words, about;  // about: what a pointer on it is told
  int look = -1;             // of which series, or none:
  double strength = 0;       // how much, from 0 to 1
};

struct CellChart {
  std::string title, description;
  std::string row_name, column_name;
  std::vector<std::string> rows, columns;
  std::vector<std::vector<Cell>> cells;
  std::vector<std::string> series;  // of the looks
};

std::string draw(const LineChart& chart);
std::string draw(const BarChart& chart);
std::string draw(const CellChart& chart);

// As few points as a line of this width can show, its peaks among them.
std::vector<Point> thinned(const std::vector<Point>& points, std::size_t most);

}  // namespace chorale::report
