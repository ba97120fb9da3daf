// Bar charts with one bar per rank, one chart for each run. Several runs also get a chart of all runs, with one bar per run.
// If there are many runs, only that chart and those of the two extreme runs are drawn.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "experiments/report/chart.hpp"

namespace chorale::report {

struct RunByRank {
  std::string label;
  std::vector<std::vector<double>> parts;      // by rank
  std::vector<std::vector<double>> predicted;  // likewise, or empty
};

struct ByRank {
  std::string what;        // "Time of a step", the beginning of the titles
  std::string prediction;  // "planned"
  Unit unit = Unit::plain;
  std::vector<std::string> parts;
  std::vector<double> (*of_run)(const std::vector<std::vector<double>>& ranks);  // reduces its ranks to one bar
  const char* of_run_name;                                                       // "mean of its ranks"
};

std::vector<double> mean_of_ranks(const std::vector<std::vector<double>>& ranks);
std::vector<double> largest_rank(const std::vector<std::vector<double>>& ranks);
double total(const std::vector<double>& parts);

std::vector<std::string> draw(const ByRank& kind, const std::vector<RunByRank>& runs);

}  // namespace chorale::report
