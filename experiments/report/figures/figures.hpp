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
  std::string finding;  // one sentence about the main result in the data
  std::vector<Drawing> charts;
  TextTable numbers;           // the data of the charts
  bool numbers_first = false;  // whether the table is above the charts and not folded
  bool wide = false;           // whether each chart takes the full width of the page
};

using MakeFigure = std::optional<Figure>(const RecordSet& records);

struct FigureRow {
  const char* name;
  const char* title;
  const char* wants;  // the required data, which the page names as missing if the figure cannot be made
  MakeFigure* make;
};

const std::vector<FigureRow>& all_figures();

}  // namespace chorale::report
