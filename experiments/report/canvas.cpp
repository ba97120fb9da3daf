#include "experiments/report/canvas.hpp"

#include <fmt/format.h>

#include "src/base/text.hpp"

namespace chorale::report {
namespace {

constexpr double letter = 7.3, line_height = 20;

// Okabe & Ito 2008. Yellow and black are replaced by colors that are visible on both white and black.
constexpr const char* light[series_looks] = {"#0072b2", "#d55e00", "#009e73", "#b0508b",
                                             "#2b9ed8", "#c98500", "#4a5160", "#7a4fc2"};
constexpr const char* dark[series_looks] = {"#4da6e8", "#ff8a3d", "#2bc79a", "#e39ac3",
                                            "#8fd0f7", "#f2b134", "#b4bdca", "#b79cf2"};
constexpr const char* dashes[series_looks] = {"", "7 3", "2 3", "9 3 2 3", "5 2", "12 4", "1 3", "6 2 1 2 1 2"};

// SVG that is drawn over the color, in a tile of 8 × 8 that repeats.
constexpr const char* hatchings[series_looks] = {
    "",
    "<path d=\"M-2 6 L6 -2 M2 10 L10 2\"/>",
    "<circle cx=\"2\" cy=\"2\" r=\"1.1\"/><circle cx=\"6\" cy=\"6\" r=\"1.1\"/>",
    "<path d=\"M0 4 H8\"/>",
    "<path d=\"M4 0 V8\"/>",
    "<path d=\"M-2 2 L6 10 M2 -2 L10 6\"/>",
    "<path d=\"M0 4 H8 M4 0 V8\"/>",
    "<circle cx=\"4\" cy=\"4\" r=\"2.4\"/>",
};

std::size_t letters(const std::string& text) {
  std::size_t count = 0;
  for (const char c : text) count += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  return count;
}

}  // namespace

double text_width(const std::string& text) { return letter * static_cast<double>(letters(text)); }

std::string fitted(const std::string& text, double width) {
  if (text_width(text) <= width) return text;
  std::string kept;
  for (const char c : text) {
    const bool begins = (static_cast<unsigned char>(c) & 0xC0) != 0x80;
    if (begins && text_width(kept) + 2 * letter > width) break;
    kept += c;
  }
  return kept + "…";
}

Canvas::Canvas(double width, const std::string& title, const std::string& description)
    : width_(width),
      head_(fmt::format("<title>{}</title>\n<desc>{}</desc>\n", escape_xml(title), escape_xml(description))) {}

void Canvas::text(double x, double y, const std::string& words, const std::string& style, const std::string& anchor) {
  body_ +=
      fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\"{}{}>{}</text>\n", x, y, style.empty() ? "" : " class=\"" + style + "\"",
                  anchor == "start" ? "" : " text-anchor=\"" + anchor + "\"", escape_xml(words));
}

void Canvas::line(double x1, double y1, double x2, double y2, const std::string& style) {
  body_ +=
      fmt::format("<line class=\"{}\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>\n", style, x1, y1, x2, y2);
}

void Canvas::hover(double x, double y, const std::string& words) {
  hovers_ += fmt::format("<circle class=\"hover\" cx=\"{:.0f}\" cy=\"{:.0f}\" r=\"7\"><title>{}</title></circle>\n", x, y,
                         escape_xml(words));
}

double Canvas::legend(double x, double y, const std::vector<LegendEntry>& entries) {
  double at = x;
  for (const LegendEntry& entry : entries) {
    const std::string name = fitted(entry.name, width_ - x - 40);
    const double wide = 30 + text_width(name) + 14;
    if (at > x && at + wide > width_) at = x, y += line_height;
    body_ += fmt::format("<g transform=\"translate({:.1f} {:.1f})\">{}</g>\n", at, y, entry.sample);
    text(at + 30, y + 10, name);
    at += wide;
  }
  return entries.empty() ? y : y + line_height;
}

std::string Canvas::finish(double height) const {
  return fmt::format("<svg class=\"chart\" viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\">\n{}{}{}</svg>\n", width_, height,
                     head_, body_, hovers_);
}

std::string line_look(std::size_t series) {
  const std::size_t look = series % series_looks;
  const std::string dash = *dashes[look] ? fmt::format(" stroke-dasharray=\"{}\"", dashes[look]) : "";
  return fmt::format("class=\"line s{}\"{}", look, dash);
}

std::string fill_look(std::size_t series, bool outlined) {
  return fmt::format("class=\"{} s{}\" fill=\"url(#hatch{})\"", outlined ? "bar outlined" : "bar", series % series_looks,
                     series % series_looks);
}

std::string mark(std::size_t series, double x, double y) {
  constexpr const char* shapes[] = {"M-3.4 0 A3.4 3.4 0 1 0 3.4 0 A3.4 3.4 0 1 0 -3.4 0 z", "M-3 -3 H3 V3 H-3 z",
                                    "M0 -4 L3.8 3 H-3.8 z", "M0 -4.4 L4.4 0 L0 4.4 L-4.4 0 z", "M0 4 L3.8 -3 H-3.8 z"};
  return fmt::format("<path class=\"mark s{}\" transform=\"translate({:.1f} {:.1f})\" d=\"{}\"/>", series % series_looks, x,
                     y, shapes[series % std::size(shapes)]);
}

std::string patterns() {
  std::string svg =
      "<svg class=\"patterns\" width=\"0\" height=\"0\" role=\"img\" aria-hidden=\"true\"><title>the hatchings of this "
      "page</title><defs>\n";
  for (std::size_t look = 0; look < series_looks; ++look)
    svg += fmt::format(
        "<pattern id=\"hatch{}\" width=\"8\" height=\"8\" patternUnits=\"userSpaceOnUse\"><rect class=\"ground s{}\" "
        "width=\"8\" "
        "height=\"8\"/><g class=\"over\">{}</g></pattern>\n",
        look, look, hatchings[look]);
  return svg + "</defs></svg>\n";
}

std::string palette() {
  const auto colours = [](const char* const(&of)[series_looks]) {
    std::string css;
    for (std::size_t look = 0; look < series_looks; ++look) css += fmt::format(" --s{}: {};", look, of[look]);
    return css;
  };
  std::string css =
      fmt::format(":root {{{} }}\n@media (prefers-color-scheme: dark) {{ :root {{{} }} }}\n", colours(light), colours(dark));
  for (std::size_t look = 0; look < series_looks; ++look) css += fmt::format(".s{} {{ color: var(--s{}) }}\n", look, look);
  return css;
}

}  // namespace chorale::report
