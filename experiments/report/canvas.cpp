#include "experiments/report/canvas.hpp"

#include <fmt/format.h>

#include <utility>

#include "src/base/text.hpp"

namespace chorale::report {
namespace {

constexpr double letter = 7.3, line_height = 20;

// The name of each color of the page, with its values in light and in dark mode.
constexpr struct {
  const char *name, *light, *dark;
} inks[] = {{"paper", "#ffffff", "#12161c"},
            {"ink", "#1c2430", "#e6eaf0"},
            {"quiet", "#5c6878", "#9aa6b5"},
            {"grid", "#e2e6ec", "#2a323d"},
            {"axis", "#9aa4b1", "#5b6675"}};

constexpr const char* style = R"css(.chart { font: 12px system-ui, sans-serif }
.chart text { fill: var(--ink) } .chart .quiet { fill: var(--quiet) } .chart .on_strong { fill: var(--paper) }
.chart .beside { paint-order: stroke; stroke: var(--paper); stroke-width: 3px; stroke-linejoin: round }
.grid { stroke: var(--grid) } .axis { stroke: var(--axis) }
.line { stroke: currentColor; stroke-width: 1.8; fill: none; stroke-linejoin: round }
.other { stroke: var(--axis); stroke-width: .8; fill: none }
.limit { stroke: var(--ink); stroke-width: 1.4; fill: none }
.thin { stroke: currentColor; stroke-width: .8; fill: none }
.mark { fill: currentColor; stroke: var(--paper); stroke-width: .8 }
.hollow { fill: var(--paper); stroke: currentColor; stroke-width: 1.4 }
.dot { fill: var(--ink); stroke: var(--paper); stroke-width: .8 }
.event { stroke: var(--ink); stroke-width: .9; stroke-dasharray: 4 3; opacity: .6 }
.interval { stroke: currentColor; stroke-width: 1.2; opacity: .6 }
.bar { stroke: currentColor; stroke-width: 1 } .outlined { fill-opacity: .25; stroke-dasharray: 3 2 }
.whisker { stroke: var(--ink); stroke-width: 1.4; fill: none }
.ground { fill: currentColor }
.hover { fill: transparent; stroke: none } .hover:hover { fill: var(--ink); fill-opacity: .2 }
.bar:hover, .heat:hover { stroke: var(--ink); stroke-width: 1.5 }
.over { stroke: var(--paper); stroke-width: 1.1; fill: var(--paper); stroke-opacity: .75; fill-opacity: .75 }
.over path { fill: none }
.heat { fill: var(--s0); stroke: var(--grid) } .plate { fill: var(--paper) }
)css";

// The palette of Okabe & Ito (2008). Yellow and black are replaced by colors that are visible on both white and black.
constexpr const char* light[series_colors] = {"#0072b2", "#d55e00", "#009e73", "#b0508b",
                                              "#2b9ed8", "#c98500", "#4a5160", "#7a4fc2"};
constexpr const char* dark[series_colors] = {"#4da6e8", "#ff8a3d", "#2bc79a", "#e39ac3",
                                             "#8fd0f7", "#f2b134", "#b4bdca", "#b79cf2"};
constexpr const char* dashes[series_colors] = {"", "7 3", "2 3", "9 3 2 3", "5 2", "12 4", "1 3", "6 2 1 2 1 2"};

// SVG of each hatching. A hatching is drawn over the color, as a tile of 8 × 8 that repeats.
constexpr const char* hatchings[series_colors] = {
    "",
    "<path d=\"M-2 6 L6 -2 M2 10 L10 2\"/>",
    "<circle cx=\"2\" cy=\"2\" r=\"1.1\"/><circle cx=\"6\" cy=\"6\" r=\"1.1\"/>",
    "<path d=\"M0 4 H8\"/>",
    "<path d=\"M4 0 V8\"/>",
    "<path d=\"M-2 2 L6 10 M2 -2 L10 6\"/>",
    "<path d=\"M0 4 H8 M4 0 V8\"/>",
    "<circle cx=\"4\" cy=\"4\" r=\"2.4\"/>",
};

// The index of the dashes and the hatching of a look. From look 8 on, each color is combined with the dashes of a different
// color, whose index is larger by two. Thus every combination of color, dashes and mark is unique.
std::size_t second_of(std::size_t look) { return (look + 2 * (look / series_colors)) % series_colors; }

std::vector<std::pair<std::string, std::string>> named_colors(bool in_dark) {
  std::vector<std::pair<std::string, std::string>> colors;
  for (const auto& ink : inks) colors.emplace_back(ink.name, in_dark ? ink.dark : ink.light);
  for (std::size_t color = 0; color < series_colors; ++color)
    colors.emplace_back(color_of(color), (in_dark ? dark : light)[color]);
  return colors;
}

std::string color_classes() {
  std::string css;
  for (std::size_t color = 0; color < series_colors; ++color)
    css += fmt::format(".{0} {{ color: var(--{0}) }}\n", color_of(color));
  return css;
}

// Replaces the names of colors by their light values.
std::string with_values(std::string css) {
  for (const auto& [name, value] : named_colors(false)) {
    const std::string variable = "var(--" + name + ")";
    for (std::size_t at = 0; (at = css.find(variable, at)) != std::string::npos;) css.replace(at, variable.size(), value);
  }
  return css;
}

std::string fill_of(std::size_t look) { return fmt::format("url(#hatch{})", look % series_looks); }

// Returns SVG that defines the hatchings that `picture` uses, or all hatchings if `picture` is "".
std::string definitions(const std::string& picture = "") {
  std::string svg;
  for (std::size_t look = 0; look < series_looks; ++look)
    if (picture.empty() || picture.find(fill_of(look)) != std::string::npos)
      svg += fmt::format(
          "<pattern id=\"hatch{}\" width=\"8\" height=\"8\" patternUnits=\"userSpaceOnUse\"><rect class=\"ground {}\" "
          "width=\"8\" height=\"8\"/><g class=\"over\">{}</g></pattern>\n",
          look, color_of(look), hatchings[second_of(look)]);
  return svg.empty() ? "" : "<defs>\n" + svg + "</defs>\n";
}

// Removes the circles that show tooltips with values.
std::string without_hovers(const std::string& svg) {
  std::string kept;
  for (const std::string& line : split(svg, '\n'))
    if (!line.starts_with("<circle class=\"hover\"")) kept += line + "\n";
  return kept;
}

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
    if (at > x && at + wide > width_) {
      at = x;
      y += line_height;
    }
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

std::string color_of(std::size_t look) { return fmt::format("s{}", look % series_colors); }

std::string line_look(std::size_t look) {
  const char* const dash = dashes[second_of(look)];
  return fmt::format("class=\"line {}\"", color_of(look)) + (*dash ? fmt::format(" stroke-dasharray=\"{}\"", dash) : "");
}

std::string fill_look(std::size_t look, bool outlined) {
  return fmt::format("class=\"{} {}\" fill=\"{}\"", outlined ? "bar outlined" : "bar", color_of(look), fill_of(look));
}

std::string mark(std::size_t look, double x, double y, bool hollow) {
  constexpr const char* shapes[] = {"M-3.4 0 A3.4 3.4 0 1 0 3.4 0 A3.4 3.4 0 1 0 -3.4 0 z", "M-3 -3 H3 V3 H-3 z",
                                    "M0 -4 L3.8 3 H-3.8 z", "M0 -4.4 L4.4 0 L0 4.4 L-4.4 0 z", "M0 4 L3.8 -3 H-3.8 z"};
  return fmt::format("<path class=\"{} {}\" transform=\"translate({:.1f} {:.1f})\" d=\"{}\"/>", hollow ? "hollow" : "mark",
                     color_of(look), x, y, shapes[look % series_looks % std::size(shapes)]);
}

std::string patterns() {
  std::string svg =
      "<svg class=\"patterns\" width=\"0\" height=\"0\" role=\"img\" aria-hidden=\"true\"><title>the hatchings of this "
      "page</title>";
  return svg + definitions() + "</svg>\n";
}

std::string chart_styles() {
  const auto colors = [](bool in_dark) {
    std::string css;
    for (const auto& [name, value] : named_colors(in_dark)) css += fmt::format(" --{}: {};", name, value);
    return css;
  };
  return fmt::format(":root {{{} }}\n@media (prefers-color-scheme: dark) {{ :root {{{} }} }}\n{}{}", colors(false),
                     colors(true), style, color_classes());
}

std::string as_file(const std::string& svg) {
  const bool has_style = svg.starts_with("<svg class=\"pipeline\"");
  const std::size_t begins = svg.find("viewBox=\"0 0 ") + 13, ends = svg.find('"', begins), inside = svg.find('>') + 1;
  const std::vector<std::string> size = split(svg.substr(begins, ends - begins), ' ');
  std::string head = svg.substr(0, inside - 1);
  if (head.find(" xmlns=") == std::string::npos) head += " xmlns=\"http://www.w3.org/2000/svg\"";
  head += fmt::format(" width=\"{}\" height=\"{}\">", size.at(0), size.at(1));
  if (has_style) return head + svg.substr(inside);
  return fmt::format("{}<style>{}</style>{}<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>{}", head,
                     with_values(style + color_classes()), definitions(svg), without_hovers(svg.substr(inside)));
}

}  // namespace chorale::report
