#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "experiments/report/chart.hpp"
#include "src/base/text.hpp"

namespace chorale::report {
namespace {

constexpr double above_bars = 12, bar_height = 16, lane = 22, under = 18,
                 most_name = 0.35;  // most_name: largest width of a name, as a share of the chart's width
constexpr double name_height = 18;  // height of a name that is placed above its bar, because there is no space beside it
constexpr double units_per_bar_tick = 90;
constexpr double least_width = 0.3;  // minimum width of a part; narrower parts are not drawn

double total_of(const Bar& bar) {
  double total = 0;
  for (const double part : bar.parts)
    if (std::isfinite(part) && part > 0) total += part;
  return total;
}

std::string bars_of(const BarChart& chart, const Bar& bar, const Scale& scale, double left, double right, double y) {
  const auto across = [&](double value) { return left + scale.place(value) * (right - left); };
  std::string svg;
  double begin = 0;
  for (std::size_t p = 0; p < bar.parts.size(); ++p) {
    const double part = bar.parts[p];
    if (!std::isfinite(part) || part <= 0) continue;
    const double x = across(begin), wide = across(begin + part) - x;
    begin += part;
    if (wide < least_width) continue;
    svg +=
        fmt::format("<rect {} x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.0f}\"><title>{}{}: {}</title></rect>\n",
                    fill_look(p, bar.outlined), x, y, wide, bar.outlined ? bar_height - 4 : bar_height, escape_xml(bar.name),
                    chart.parts.size() > 1 ? ", " + escape_xml(chart.parts.at(p)) : "", quantity(part, chart.axis.unit));
  }
  if (std::isfinite(bar.low) && std::isfinite(bar.high) && bar.high > bar.low)
    svg += fmt::format(
        "<path class=\"whisker\" d=\"M{0:.1f} {2:.1f}v8m0 -4H{1:.1f}m0 -4v8\"><title>{3}: {4} to {5}</title></path>\n",
        across(bar.low), across(bar.high), y + bar_height / 2 - 4, escape_xml(bar.name), quantity(bar.low, chart.axis.unit),
        quantity(bar.high, chart.axis.unit));
  return svg;
}

}  // namespace

// The values are in a column on the right. Beside a whisker, a reader could take the value for the position of the whisker's
// end.
std::string draw(const BarChart& chart, Looks&, double width) {
  Canvas canvas(width, chart.title, chart.description);
  std::vector<Bar> bars;
  std::ranges::copy_if(chart.bars, std::back_inserter(bars), [](const Bar& bar) { return total_of(bar) > 0; });
  std::vector<double> ends;
  const bool above = width < half_width;  // the names are above the bars
  double left = 24, right = width - 8;
  for (const Bar& bar : bars) {
    ends.push_back(total_of(bar));
    ends.push_back(bar.high);
    if (!above) left = std::max(left, std::min(most_name * width, text_width(bar.name)) + 10);
    right = std::min(right, width - 14 - text_width(quantity(total_of(bar), chart.axis.unit)));
  }
  Scale scale(Scale::Spacing::linear, chart.axis.unit, ends);
  scale.include(0);
  double height = above_bars;
  for (const Bar& bar : bars) height += (bar.outlined ? under : lane) + (above ? name_height : 0);

  const auto marks = scale.ticks(static_cast<std::size_t>(width / units_per_bar_tick));
  const auto words = scale.labels(marks);
  double free = 0;
  for (std::size_t i = 0; i < marks.size(); ++i) {
    const double x = left + scale.place(marks[i]) * (right - left), half = text_width(words[i]) / 2;
    canvas.line(x, above_bars - 4, x, height, "grid");
    if (x - half < free || x + half > width) continue;
    canvas.text(x, height + 16, words[i], "quiet", "middle");
    free = x + half + 8;
  }
  double y = above_bars;
  for (const Bar& bar : bars) {
    const char* const style = bar.outlined ? "quiet" : "";
    if (above) {
      canvas.text(left + 4, y + 13, fitted(bar.name, width - left - 4), style);
      y += name_height;
    } else
      canvas.text(left - 8, y + (bar.outlined ? 10 : 13), fitted(bar.name, left - 10), style, "end");
    canvas.add(bars_of(chart, bar, scale, left, right, y));
    canvas.text(width - 4, y + (bar.outlined ? 10 : 13), quantity(total_of(bar), chart.axis.unit), "quiet", "end");
    y += bar.outlined ? under : lane;
  }
  canvas.line(left, above_bars - 4, left, height, "axis");
  canvas.text((left + right) / 2, height + 36, chart.axis.name, "quiet", "middle");
  std::vector<LegendEntry> legend;
  const auto seen = [&](std::size_t part) {  // whether the part is visible in any bar
    return std::any_of(bars.begin(), bars.end(), [&](const Bar& bar) {
      return part < bar.parts.size() && bar.parts[part] * (right - left) >= least_width * scale.high();
    });
  };
  for (std::size_t p = 0; p < chart.parts.size() && chart.parts.size() > 1; ++p)
    if (seen(p)) legend.push_back({chart.parts[p], fmt::format("<rect {} width=\"24\" height=\"12\"/>", fill_look(p))});
  return canvas.finish(canvas.legend(0, height + 50, legend) + 4);
}

}  // namespace chorale::report
