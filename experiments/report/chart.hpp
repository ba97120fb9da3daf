// The chart kinds of the report. Each turns plain data into SVG.
//
//   LineChart   series over a linear or logarithmic axis, with intervals. Limits, ideals and gray lines lie behind them
//   BarChart    horizontal stacked bars, one per rank or run, with an interval at the bar's end
//   CellChart   a table of colored cells: the color shows an amount, or one of several series
//
// Charts are 600 units wide: two fit side by side on a laptop, and on a phone each scrolls sideways in its own frame.
#pragma once
#include <limits>
#include <string>
#include <utility>
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
  std::vector<double> marks;  // tick positions; empty: round values
};

struct Point {
  double x = 0, y = 0;
  double low = absent, high = absent;  // the ends of an interval; NaN: none
};

struct Line {
  enum class Kind { series, limit, other };  // limit: dashed, without marks; other: thin, gray, not in the legend
  std::string name;
  std::vector<Point> points;
  std::size_t look = 0;  // the number of the line's color, dashes and mark: see canvas.hpp
  Kind kind = Kind::series;
};

struct LineChart {
  std::string title, description;
  Axis x, y;
  std::vector<Line> lines;
};

struct Bar {
  std::string name;
  std::vector<double> parts;           // the length of each part
  double low = absent, high = absent;  // the ends of an interval; NaN: none
  bool outlined = false;               // a prediction, drawn below its measurement
};

struct BarChart {
  std::string title, description;
  Axis axis;
  std::vector<std::string> parts;  // the names of the parts, for the legend; a single part gets none
  std::vector<Bar> bars;
};

struct Cell {
  std::string words, about;  // the text in the cell, and its tooltip
  int look = -1;             // the index of the cell's series; −1: the cell shows an amount
  double strength = 0;       // the amount, from 0 to 1
};

struct CellChart {
  std::string title, description;
  std::string row_name, column_name;
  std::vector<std::string> rows, columns;
  std::vector<std::vector<Cell>> cells;
  std::vector<std::string> series;                         // the names of the series, by Cell::look
  std::vector<std::pair<double, std::string>> scale = {};  // amounts (Cell::strength) to show in the legend, and their names
};

std::string draw(const LineChart& chart);
std::string draw(const BarChart& chart);
std::string draw(const CellChart& chart);

// Selects at most `most` points (but no fewer than four) that keep the shape of the curve: the first, the last, and the
// lowest and highest of each stretch between them.
std::vector<Point> thinned(const std::vector<Point>& points, std::size_t most);

}  // namespace chorale::report
