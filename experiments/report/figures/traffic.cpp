// Shows the bytes that all ranks of a run sent along each axis of the mesh, by operation, with the planned bytes below them.
// The bytes are the totals of a run, including evaluations. In contrast, the table of the runs has the bytes of one training
// step. If a run was repeated, the median is shown.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/report/blocks.hpp"
#include "experiments/report/figures/by_rank.hpp"
#include "experiments/report/figures/figures.hpp"
#include "experiments/report/ranking.hpp"

namespace chorale::report {
namespace {

constexpr std::size_t most_axes = 24;
constexpr double least_visible = 0.005;  // minimum length of a visible part, as a share of the longest bar

// An axis of a run: its bytes by operation.
struct AxisTraffic {
  std::string name;
  std::vector<double> measured, predicted;
  double bytes() const { return std::max(total(measured), total(predicted)); }
};

// Sums over the ranks, by axis and operation. A value of −1 means that a library sent the bytes without counting them. A sum
// with such a value is −1, too.
std::vector<std::vector<double>> sums_of(const std::vector<double>& values, std::size_t axes, std::size_t ops) {
  std::vector<std::vector<double>> sums(axes, std::vector<double>(ops, 0));
  for (std::size_t at = 0; at < values.size() && axes * ops > 0; ++at) {
    double& sum = sums[at / ops % axes][at % ops];
    sum = sum < 0 || values[at] < 0 ? -1 : sum + values[at];
  }
  return sums;
}

}  // namespace

std::optional<Figure> traffic(const RecordSet& records) {
  Figure figure{.numbers = TextTable({"run", "axis", "operation", "measured", "predicted", "calls"})};
  BarChart chart{.title = "Bytes sent along each axis, by all ranks",
                 .description = "One bar per axis and run, stacked by operation; the prediction is outlined below it.",
                 .axis = {.name = "bytes of the whole run, evaluations included", .unit = Unit::bytes}};
  double unequal = 0, all = 0;
  std::vector<AxisTraffic> sent;
  for (const auto& same : ranked(records, "traffic")) {
    const RecordGroup group = same.front()->group("traffic");
    const auto axes = group.words("axis"), ops = group.words("op");
    const auto sums = [&](const char* variable) {
      const auto numbers = [&](const RecordedRun& run) { return run.group("traffic").numbers(variable); };
      return sums_of(medians_of(each_over_repetitions(same, numbers)), axes.size(), ops.size());
    };
    const auto measured = sums("bytes_measured"), predicted = sums("bytes_predicted"), calls = sums("calls");
    if (chart.parts.empty()) chart.parts = ops;
    for (std::size_t a = 0; a < axes.size() && ops == chart.parts; ++a) {
      const auto none = [](const std::vector<double>& bytes) {
        return std::all_of(bytes.begin(), bytes.end(), [](double b) { return b == 0; });
      };
      if (none(measured[a]) && none(predicted[a])) continue;
      for (std::size_t o = 0; o < ops.size(); ++o) {
        if (measured[a][o] == 0 && predicted[a][o] == 0) continue;
        const bool counted = measured[a][o] >= 0;
        figure.numbers.add({same.front()->label, axes[a], ops[o],
                            counted ? quantity(measured[a][o], Unit::bytes) : "not counted",
                            quantity(predicted[a][o], Unit::bytes), fmt::format("{:.0f}", calls[a][o])});
        if (counted) {
          unequal += std::abs(measured[a][o] - predicted[a][o]);
          all += measured[a][o];
        }
      }
      sent.push_back({same.front()->label + ": " + axes[a], measured[a], predicted[a]});
    }
  }
  if (sent.empty()) return {};
  const double longest = std::ranges::max(sent, {}, &AxisTraffic::bytes).bytes();
  std::size_t shown = 0;
  for (const AxisTraffic& axis : sent) {
    if (axis.bytes() < least_visible * longest || shown == most_axes) continue;
    ++shown;
    const bool counted = total(axis.measured) > 0;
    if (counted) chart.bars.push_back({.name = axis.name, .parts = axis.measured});
    chart.bars.push_back(
        {.name = counted ? "predicted" : axis.name + ", predicted", .parts = axis.predicted, .outlined = true});
  }
  for (std::size_t o = chart.parts.size(); o-- > 0;) {  // unused operations are not in the legend
    const auto used = [&](const Bar& bar) { return bar.parts[o] > 0; };
    if (std::any_of(chart.bars.begin(), chart.bars.end(), used)) continue;
    chart.parts.erase(chart.parts.begin() + static_cast<std::ptrdiff_t>(o));
    for (Bar& bar : chart.bars) bar.parts.erase(bar.parts.begin() + static_cast<std::ptrdiff_t>(o));
  }
  figure.finding = unequal == 0 ? fmt::format("All counted bytes are exactly as predicted: {}", quantity(all, Unit::bytes))
                                : fmt::format("Of {} counted, {} differ from the prediction", quantity(all, Unit::bytes),
                                              quantity(unequal, Unit::bytes));
  const std::size_t left_out = sent.size() - shown;
  figure.finding += left_out
                        ? fmt::format("; {} more {} in the table, {}.", left_out, left_out == 1 ? "axis is" : "axes are",
                                      shown == most_axes ? "for lack of room" : "with too few bytes for a bar")
                        : ".";
  figure.charts.push_back(drawing_of(std::move(chart)));
  return figure;
}

}  // namespace chorale::report
