// The table of the report's figures. To add a figure, write a file in this folder and a row in figures.cpp.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "experiments/report/chart.hpp"
#include "experiments/report/record_set.hpp"
#include "src/base/text_table.hpp"

namespace chorale::report {

struct Figure {
  std::string finding;  // one sentence that says what the data show
  std::vector<Drawing> charts;
  TextTable numbers;           // the data of the charts
  bool numbers_first = false;  // the table stands above the charts and is not folded
  bool wide = false;           // each chart takes the whole width of the page
};

struct FigureRow {
  const char* name;
  const char* title;
  const char* wants;  // the data that the figure needs; if they are missing, the page names them instead of the figure
  std::optional<Figure> (*make)(const RecordSet& records);
};

const std::vector<FigureRow>& all_figures();

}  // namespace chorale::report
