// Charts of what every rank of every run has, a bar a rank: a chart a run, while runs are few, and one of all runs, a bar
// each. Of many runs only the last of these and the two that lie furthest apart are drawn.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "experiments/report/chart.hpp"

namespace chorale::report {

struct RunByRank {
  std::string label;
  std::vector<std::vector<double>> parts;      // by rank
  std::vector<std::vector<double>> predicted;  // the same, or nothing
};

struct ByRank {
  std::string what;        // "Time of a step", which begins the charts' titles
  std::string prediction;  // "planned"
  Unit unit = Unit::plain;
  std::vector<std::string> parts;
  std::vector<double> (*of_run)(const std::vector<std::vector<double>>& ranks);  // what stands for all its ranks
  const char* of_run_name;                                                       // "mean of its ranks"
};

std::vector<double> mean_of_ranks(const std::vector<std::vector<double>>& ranks);
std::vector<double> largest_rank(const std::vector<std::vector<double>>& ranks);
double total(const std::vector<double>& parts);

std::vector<std::string> draw(const ByRank& kind, const std::vector<RunByRank>& runs);

}  // namespace chorale::report
