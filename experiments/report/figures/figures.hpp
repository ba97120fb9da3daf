// The figures of the report: a row of the table each. To add one, a file beside this one and its line in figures.cpp.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "experiments/report/chart.hpp"
#include "experiments/report/record_set.hpp"
#include "src/base/text_table.hpp"

namespace chorale::report {

struct Figure {
  std::string finding;              // one sentence, of what the data say
  std::vector<std::string> charts;  // SVG
  TextTable numbers;                // what the charts were drawn from
  bool numbers_first = false;       // they are the figure: shown, not folded away
  bool wide = false;                // each chart has the page's whole width
};

struct FigureRow {
  const char* name;
  const char* title;
  const char* wants;  // what it is left out for want of
  std::optional<Figure> (*make)(const RecordSet& records);
};

const std::vector<FigureRow>& all_figures();

}  // namespace chorale::report
