// Shows the speed or loss of the runs against their memory, with one dot per label, and the Pareto front. A run is on the
// front unless a different run is at least as good in both values, and better in one.
//
//   tokens/s │         ┌─── ● dp4        front: pp4, tp4, dp4
//            │   ┌─ ● tp4                dp4.z3 is not: tp4 is faster and needs less memory
//            │ ● pp4     ● dp4.z3
//            └─────────────────────  memory/rank
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "experiments/report/chart.hpp"
#include "experiments/report/ranking.hpp"

namespace chorale::report {

struct RunDot {
  std::string label;
  double memory = absent;                              // bytes of the rank with the most memory
  double value = absent, low = absent, high = absent;  // by the criterion
};

// The indices of the dots on the front, by ascending memory. Runs without a value are left out.
std::vector<std::size_t> pareto_front(const std::vector<RunDot>& dots, bool highest_is_best);

struct Tradeoff {
  LineChart chart;
  std::string finding;  // one sentence that names the front
};
std::optional<Tradeoff> tradeoff_of(const std::vector<RunDot>& dots, const Criterion& criterion);  // of two or more runs

}  // namespace chorale::report
