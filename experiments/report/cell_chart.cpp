#include <fmt/format.h>

#include <algorithm>

#include "experiments/report/chart.hpp"
#include "src/base/text.hpp"

namespace chorale::report {
namespace {

constexpr double above_cells = 44, cell_height = 26, most_cell = 90;
constexpr double strong = 0.5;  // cells above this `strength` have light text

std::string heat_look(double strength) { return fmt::format("class=\"heat\" fill-opacity=\"{:.2f}\"", 0.95 * strength); }

}  // namespace

std::string draw(const CellChart& chart, Looks& looks, double width) {
  Canvas canvas(width, chart.title, chart.description);
  std::vector<LegendEntry> legend;  // built first, so that series get their looks in the order of the legend
  for (const auto& [words, name] : chart.series)
    legend.push_back({words + " " + name, fmt::format("<rect {} width=\"24\" height=\"12\"/>", fill_look(looks.of(name)))});
  double left = text_width(chart.row_name) + 10;
  for (const std::string& row : chart.rows) left = std::max(left, text_width(row) + 10);
  const auto columns = static_cast<double>(std::max<std::size_t>(1, chart.columns.size()));
  const double cell_width = std::min(most_cell, (width - left) / columns);
  canvas.text(left, above_cells - 28, chart.column_name, "quiet");
  canvas.text(left - 8, above_cells - 8, chart.row_name, "quiet", "end");
  double free = 0;
  for (std::size_t c = 0; c < chart.columns.size(); ++c) {
    const double middle = left + (static_cast<double>(c) + 0.5) * cell_width, half = text_width(chart.columns[c]) / 2;
    if (middle - half < free || middle + half > width) continue;
    canvas.text(middle, above_cells - 8, chart.columns[c], "quiet", "middle");
    free = middle + half + 6;
  }
  for (std::size_t r = 0; r < chart.rows.size(); ++r) {
    const double y = above_cells + static_cast<double>(r) * cell_height;
    canvas.text(left - 8, y + 17, chart.rows[r], "", "end");
    for (std::size_t c = 0; c < chart.cells.at(r).size(); ++c) {
      const Cell& cell = chart.cells[r][c];
      const double x = left + static_cast<double>(c) * cell_width;
      const std::string look = cell.series.empty() ? heat_look(cell.strength) : fill_look(looks.of(cell.series));
      canvas.add(
          fmt::format("<rect {} x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.0f}\"><title>{}</title></rect>\n",
                      look, x + 1, y + 1, cell_width - 2, cell_height - 2, escape_xml(cell.about)));
      if (cell.words.empty() || text_width(cell.words) > cell_width - 4) continue;
      if (!cell.series.empty())  // the cell is hatched, so its text gets a plain background
        canvas.add(fmt::format("<rect class=\"plate\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"16\" rx=\"3\"/>\n",
                               x + cell_width / 2 - text_width(cell.words) / 2 - 3, y + 5, text_width(cell.words) + 6));
      canvas.text(x + cell_width / 2, y + 17, cell.words, cell.series.empty() && cell.strength > strong ? "on_strong" : "",
                  "middle");
    }
  }
  const double bottom = above_cells + cell_height * static_cast<double>(chart.rows.size());
  for (const auto& [strength, name] : chart.scale)
    legend.push_back({name, fmt::format("<rect {} width=\"24\" height=\"12\"/>", heat_look(strength))});
  return canvas.finish(canvas.legend(0, bottom + 12, legend) + 6);
}

}  // namespace chorale::report
