// Draws bar charts: one chart per run, with one bar per rank. If there are several runs, an overview has one bar per run. If
// there are many runs, only the overview and the charts of the runs with the longest and the shortest bar are drawn.
#pragma once
#include <string>
#include <vector>

#include "experiments/report/chart.hpp"

namespace chorale::report {

struct RunByRank {
  std::string label;
  std::vector<std::vector<double>> parts;      // [rank]: the lengths of the bar's parts
  std::vector<std::vector<double>> predicted;  // [rank]: the predicted lengths; empty without a prediction
  std::vector<std::string> names = {};         // names of the bars; if it is empty, "rank 0" …
  double low = absent, high = absent;          // an interval of the length of every bar; NaN if there is none
  std::string name_of(std::size_t rank) const;
};

struct ByRank {
  std::string what;        // the beginning of the titles: "Time of a step"
  std::string prediction;  // the name of predicted bars: "planned"
  Unit unit = Unit::plain;
  std::vector<std::string> parts;                                                // the names of a bar's parts
  std::vector<double> (*of_run)(const std::vector<std::vector<double>>& ranks);  // reduces a run's ranks to one bar
  const char* of_run_name;                                                       // "mean of the ranks"
  std::string spread = {};                                                       // the name of the bars' intervals
};

std::vector<double> largest_rank(const std::vector<std::vector<double>>& ranks);
double total(const std::vector<double>& parts);

std::vector<Drawing> draw(const ByRank& kind, const std::vector<RunByRank>& runs);

}  // namespace chorale::report
