#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/report/chart.hpp"
#include "src/base/text.hpp"

namespace chorale::report {
namespace {

constexpr double top = 26, bottom = 280;
constexpr double units_per_point = 3.75, units_per_hover = 12, units_per_tick = 100;  // of the width
constexpr std::size_t most_marks = 24, most_ticks = 6;

Scale scale_of(const Axis& axis, const std::vector<double>& values) {
  Scale scale(axis.spacing, axis.unit, values);
  if (axis.from_zero) scale.include(0);
  return scale;
}

class Plot {
 public:
  Plot(const LineChart& chart, double width)
      : chart_(chart),
        right_(width - 10),
        canvas_(width, chart.title, chart.description),
        x_(scale_of(chart.x, values([](const Point& point) { return std::vector{point.x}; }))),
        y_(scale_of(chart.y, values([](const Point& point) {
                      return std::vector{point.y, point.low, point.high};
                    }))) {}

  std::string draw() {
    axes();
    std::vector<LegendEntry> legend;
    for (const Line::Kind kind : {Line::Kind::other, Line::Kind::limit, Line::Kind::series})
      for (const Line& line : chart_.lines)
        if (line.kind == kind) draw(line);
    for (const Line& line : chart_.lines)
      if (line.kind != Line::Kind::other && !line.points.empty()) legend.push_back({line.name, sample(line)});
    const double end = canvas_.legend(0, bottom + 52, legend);
    return canvas_.finish(end + 4);
  }

 private:
  template <class Of>
  std::vector<double> values(const Of& of) const {
    std::vector<double> all;
    for (const Line& line : chart_.lines)
      for (const Point& point : line.points)
        for (const double value : of(point)) all.push_back(value);
    return all;
  }

  double across(double x) const { return left_ + 8 + x_.place(x) * (right_ - 16 - left_); }
  double down(double y) const { return bottom - 6 - y_.place(y) * (bottom - top - 12); }

  std::size_t places_of(double units) const { return static_cast<std::size_t>(canvas_.width() / units); }

  void axes() {
    const auto y_marks = chart_.y.marks.empty() ? y_.ticks(most_ticks) : chart_.y.marks;
    const auto y_words = y_.labels(y_marks);
    for (const std::string& words : y_words) left_ = std::max(left_, text_width(words) + 8);
    for (std::size_t i = 0; i < y_marks.size(); ++i) {
      canvas_.line(left_, down(y_marks[i]), right_, down(y_marks[i]), "grid");
      canvas_.text(left_ - 6, down(y_marks[i]) + 4, y_words[i], "quiet", "end");
    }
    const auto x_marks = chart_.x.marks.empty() ? x_.ticks(places_of(units_per_tick)) : chart_.x.marks;
    const auto x_words = x_.labels(x_marks);
    double free = 0;  // where the next label may begin
    for (std::size_t i = 0; i < x_marks.size(); ++i) {
      const double half = text_width(x_words[i]) / 2, at = across(x_marks[i]);
      canvas_.line(at, bottom, at, bottom + 4, "axis");
      const double middle = std::min(at, canvas_.width() - half);  // the last label may need room at the edge
      if (middle - half < free) continue;
      canvas_.text(middle, bottom + 18, x_words[i], "quiet", "middle");
      free = middle + half + 8;
    }
    canvas_.text(0, top - 8, chart_.y.name, "quiet");
    canvas_.line(left_, bottom, right_, bottom, "axis");
    canvas_.text((left_ + right_) / 2, bottom + 38, chart_.x.name, "quiet", "middle");
  }

  std::string sample(const Line& line) const {
    return fmt::format("<path {} d=\"M0 6 H24\"/>{}", look_of(line),
                       line.kind == Line::Kind::series ? mark(line.look, 12, 6) : "");
  }

  static std::string look_of(const Line& line) {
    if (line.kind == Line::Kind::series) return line_look(line.look);
    if (line.kind == Line::Kind::other) return "class=\"other\"";
    return fmt::format("class=\"limit\" stroke-dasharray=\"{}\"", line.look == 0 ? "2 3" : "10 3 2 3");
  }

  bool holds(const Point& point) const { return x_.holds(point.x) && y_.holds(point.y); }

  // "ring, 4 KiB: 12.3 µs (11.9 µs to 12.8 µs)"
  std::string words_for(const Line& line, const Point& point) const {
    const auto y = [&](double value) { return quantity(value, chart_.y.unit, digits); };
    std::string words = fmt::format("{}, {} {}: {}", line.name, chart_.x.name, quantity(point.x, chart_.x.unit), y(point.y));
    if (std::isfinite(point.low) && std::isfinite(point.high) && point.low < point.high)
      words += fmt::format(" ({} to {})", y(point.low), y(point.high));
    return words;
  }

  void draw(const Line& line) {
    std::string path;
    bool pen_up = true;
    const std::vector<Point> points = thinned(line.points, places_of(units_per_point));
    const auto shown =
        static_cast<std::size_t>(std::count_if(points.begin(), points.end(), [&](const Point& p) { return holds(p); }));
    const std::size_t stride = shown / most_marks + 1;
    std::string marks;
    std::size_t drawn = 0;
    for (const Point& point : points) {
      if (!holds(point)) {
        pen_up = true;  // the point has no position on the axes, so the line is interrupted
        continue;
      }
      const double x = across(point.x), y = down(point.y);
      path += fmt::format("{}{:.1f} {:.1f}", pen_up ? "M" : "L", x, y);
      pen_up = false;
      if (line.kind != Line::Kind::series) continue;
      if (y_.holds(point.low) && y_.holds(point.high))
        canvas_.add(fmt::format("<path class=\"interval s{}\" d=\"M{:.1f} {:.1f}V{:.1f}\"/>\n", line.look % series_looks, x,
                                down(point.low), down(point.high)));
      if (drawn++ % stride == (line.look * 3) % stride || shown == 1) marks += mark(line.look, x, y);
    }
    if (path.empty()) return;
    canvas_.add(
        fmt::format("<path {} d=\"{}\"><title>{}</title></path>{}\n", look_of(line), path, escape_xml(line.name), marks));
    if (line.kind == Line::Kind::other) return;  // many: their names are enough
    for (const Point& point : thinned(line.points, places_of(units_per_hover)))
      if (holds(point)) canvas_.hover(across(point.x), down(point.y), words_for(line, point));
  }

  static constexpr int digits = 5;  // of a value that the pointer rests on

  const LineChart& chart_;
  const double right_;
  Canvas canvas_;
  Scale x_, y_;
  double left_ = 24;
};

}  // namespace

// Keeps the first and the last point. Divides the points between them into stretches, and keeps the lowest and the highest
// point of each stretch, in the original order. NaN counts as the highest value, so that gaps are kept.
std::vector<Point> thinned(const std::vector<Point>& points, std::size_t most) {
  if (points.size() <= most) return points;
  std::vector<Point> kept{points.front()};
  const std::size_t stretches = std::max<std::size_t>(1, most / 2 - 1), inner = points.size() - 2;
  for (std::size_t s = 0; s < stretches; ++s) {
    const auto begin = points.begin() + 1 + static_cast<std::ptrdiff_t>(s * inner / stretches);
    const auto end = points.begin() + 1 + static_cast<std::ptrdiff_t>((s + 1) * inner / stretches);
    if (begin == end) continue;
    const auto lower = [](const Point& a, const Point& b) { return a.y < b.y || (std::isnan(b.y) && !std::isnan(a.y)); };
    const auto lowest = std::min_element(begin, end, lower), highest = std::max_element(begin, end, lower);
    kept.push_back(*std::min(lowest, highest));
    if (lowest != highest) kept.push_back(*std::max(lowest, highest));
  }
  kept.push_back(points.back());
  return kept;
}

std::string draw(const LineChart& chart, double width) { return Plot(chart, width).draw(); }

}  // namespace chorale::report
