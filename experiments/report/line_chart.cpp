#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/report/chart.hpp"
#include "src/base/text.hpp"

namespace chorale::report {
namespace {

constexpr double top = 26, bottom = 280;
constexpr double units_per_point = 3.75, units_per_hover = 12, units_per_tick = 100;  // distances along the width
constexpr double units_per_event = 10;                                                // events that are closer have one mark
constexpr std::size_t most_marks = 24, most_ticks = 6, most_event_lines = 12, most_events_named = 4;

Scale scale_of(const ChartAxis& axis, const std::vector<double>& values) {
  Scale scale(axis.spacing, axis.unit, values);
  if (axis.from_zero) scale.include(0);
  return scale;
}

class Plot {
 public:
  Plot(const LineChart& chart, Looks& looks, double width)
      : chart_(chart),
        looks_(looks),
        right_(width - 10),
        canvas_(width, chart.title, chart.description),
        x_(scale_of(chart.x, values([](const Point& point) { return std::vector{point.x}; }))),
        y_(scale_of(chart.y, values([](const Point& point) {
                      return std::vector{point.y, point.low, point.high};
                    }))) {}

  std::string draw() {
    using enum Line::Kind;
    axes();
    std::vector<LegendEntry> legend;
    for (const Line& line : chart_.lines)
      if ((line.kind == events ? !marks_of(line).empty() : drawable(line)) && in_legend(line))
        legend.push_back({line.name, sample(line)});  // assigns looks
    if (!chart_.hollow.empty()) legend.push_back({chart_.hollow, "<circle class=\"hollow\" cx=\"12\" cy=\"6\" r=\"3.4\"/>"});
    for (const Line& line : chart_.lines)
      if (line.kind == events) draw_marks(line);
    for (const Line::Kind kind : {other, limit, model, series, hollow})
      for (const Line& line : chart_.lines)
        if (line.kind == kind) draw(line);
    draw_dots();
    for (const Line& line : chart_.lines)
      if (line.kind == events) name_events(line);
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
    double free = 0;  // the leftmost position at which the next label can begin
    for (std::size_t i = 0; i < x_marks.size(); ++i) {
      const double half = text_width(x_words[i]) / 2, at = across(x_marks[i]);
      canvas_.line(at, bottom, at, bottom + 4, "axis");
      const double middle = std::min(at, canvas_.width() - half);  // moved to the left if it would cross the edge
      if (middle - half < free) continue;
      canvas_.text(middle, bottom + 18, x_words[i], "quiet", "middle");
      free = middle + half + 8;
    }
    canvas_.text(0, top - 8, chart_.y.name, "quiet");
    if (!chart_.note.empty())
      canvas_.text(right_, top - 8, fitted(chart_.note, right_ - text_width(chart_.y.name) - 16), "quiet", "end");
    canvas_.line(left_, bottom, right_, bottom, "axis");
    canvas_.text((left_ + right_) / 2, bottom + 38, chart_.x.name, "quiet", "middle");
  }

  static bool in_legend(const Line& line) {
    using enum Line::Kind;
    return line.kind == series || line.kind == limit || line.kind == model || line.kind == events;
  }
  bool drawable(const Line& line) const {
    return std::ranges::any_of(line.points, [&](const Point& point) { return holds(point); });
  }

  std::size_t number_of(const Line& line) const { return looks_.of(line.series.empty() ? line.name : line.series); }

  std::string sample(const Line& line) const {
    if (line.kind == Line::Kind::events) return "<path class=\"event\" d=\"M12 2V13\"/>" + event_mark(12, 1);
    return fmt::format("<path {} d=\"M0 6 H24\"/>{}", look_of(line),
                       line.kind == Line::Kind::series ? mark(number_of(line), 12, 6) : "");
  }

  std::string look_of(const Line& line) const {
    switch (line.kind) {
      case Line::Kind::series: return line_look(number_of(line));
      case Line::Kind::hollow: return fmt::format("class=\"thin {}\" stroke-dasharray=\"3 3\"", color_of(number_of(line)));
      case Line::Kind::limit: return "class=\"limit\" stroke-dasharray=\"2 3\"";
      case Line::Kind::model: return "class=\"limit\" stroke-dasharray=\"10 3 2 3\"";
      default: return "class=\"other\"";
    }
  }

  bool holds(const Point& point) const { return x_.holds(point.x) && y_.holds(point.y); }

  // "ring, 4 KiB: 12.3 µs (11.9 µs to 12.8 µs)"
  std::string words_for(const std::string& name, const Point& point) const {
    const auto y = [&](double value) { return quantity(value, chart_.y.unit, digits); };
    std::string words = fmt::format("{}, {} {}: {}", name, chart_.x.name, quantity(point.x, chart_.x.unit), y(point.y));
    if (std::isfinite(point.low) && std::isfinite(point.high) && point.low < point.high)
      words += fmt::format(" ({} to {})", y(point.low), y(point.high));
    return words;
  }

  void interval(const Point& point, const std::string& color) {
    canvas_.add(fmt::format("<path class=\"interval {}\" d=\"M{:.1f} {:.1f}V{:.1f}\"/>\n", color, across(point.x),
                            down(point.low), down(point.high)));
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
      const bool hollow = line.kind == Line::Kind::hollow;
      if (line.kind != Line::Kind::series && !hollow) continue;
      const std::size_t look = number_of(line);
      if (y_.holds(point.low) && y_.holds(point.high)) interval(point, color_of(look));
      if (drawn++ % stride == (look * 3) % stride || shown == 1) marks += mark(look, x, y, hollow);
    }
    if (path.empty()) return;
    canvas_.add(
        fmt::format("<path {} d=\"{}\"><title>{}</title></path>{}\n", look_of(line), path, escape_xml(line.name), marks));
    if (line.kind == Line::Kind::other) return;  // no tooltips, because there are many such lines
    for (const Point& point : thinned(line.points, places_of(units_per_hover)))
      if (holds(point)) canvas_.hover(across(point.x), down(point.y), words_for(line.name, point));
  }

  struct Box {
    double left, top, right, bottom;
    bool meets(const Box& other) const {
      return left < other.right && other.left < right && top < other.bottom && other.top < bottom;
    }
  };

  static std::string event_mark(double x, double y) {
    return fmt::format("<path class=\"dot\" transform=\"translate({:.1f} {:.1f})\" d=\"M-4 -3H4L0 4z\"/>", x, y);
  }

  // Events that are close to each other on the x axis, in its order.
  std::vector<std::vector<const Point*>> marks_of(const Line& line) const {
    std::vector<const Point*> all;
    for (const Point& point : line.points)
      if (x_.holds(point.x)) all.push_back(&point);
    std::ranges::stable_sort(all, {}, [](const Point* point) { return point->x; });
    std::vector<std::vector<const Point*>> marks;
    for (const Point* const point : all)
      if (marks.empty() || across(point->x) - across(marks.back().front()->x) >= units_per_event)
        marks.push_back({point});
      else
        marks.back().push_back(point);
    return marks;
  }

  // "died: rank 3, dp4 → dp3, step 16", or "2 events, step 16 to 17: died: rank 3, dp4 → dp3; resized, dp3 → dp4"
  std::string words_for(const std::vector<const Point*>& mark) const {
    const auto x = [&](const Point* event) { return quantity(event->x, chart_.x.unit, digits); };
    const std::string first = x(mark.front()), last = x(mark.back());
    if (mark.size() == 1) return fmt::format("{}, {} {}", mark.front()->name, chart_.x.name, first);
    std::vector<std::string> names;
    for (std::size_t i = 0; i < std::min(mark.size(), most_events_named); ++i) names.push_back(mark[i]->name);
    if (mark.size() > names.size()) names.push_back(fmt::format("and {} more", mark.size() - names.size()));
    return fmt::format("{} events, {} {}: {}", mark.size(), chart_.x.name, first == last ? first : first + " to " + last,
                       join(names, "; "));
  }

  // Draws the marks of events behind the curves. Many events have short marks, which do not cover the curves.
  void draw_marks(const Line& line) {
    const auto marks = marks_of(line);
    const bool are_short = marks.size() > most_event_lines;
    for (const auto& mark : marks) {
      const double x = across(mark.front()->x);
      canvas_.add(fmt::format("<path class=\"event\" d=\"M{:.1f} {}V{}\"/>{}\n", x, top, are_short ? top + 14 : bottom,
                              event_mark(x, top)));
      canvas_.hover(x, top, words_for(mark));
    }
  }

  // Writes the names of events over the curves, at the top of the plot, where a falling loss leaves space. A name that would
  // cross another mark is shortened at its first comma or colon, or left out.
  void name_events(const Line& line) {
    const auto marks = marks_of(line);
    std::vector<Box> taken;
    for (const auto& mark : marks) taken.push_back({across(mark[0]->x) - 4, top - 4, across(mark[0]->x) + 4, bottom});
    for (const auto& mark : marks) {
      const std::string name = mark.size() == 1 ? mark.front()->name : fmt::format("{} events", mark.size());
      for (const char* const until : {"", ",", ":"})
        if (write_beside(across(mark.front()->x), *until ? name.substr(0, name.find(*until)) : name, taken)) break;
    }
  }

  // Writes the name of an event on the right or on the left of its mark. Returns false if there is no space.
  bool write_beside(double x, const std::string& name, std::vector<Box>& taken) {
    const double wide = text_width(name);
    for (const Box& box : {Box{x + 6, top + 1, x + 6 + wide, top + 15}, Box{x - 6 - wide, top + 1, x - 6, top + 15}}) {
      if (box.left < left_ || box.right > canvas_.width()) continue;
      if (std::ranges::any_of(taken, [&](const Box& other) { return box.meets(other); })) continue;
      canvas_.text(box.left, box.top + 11, name, "beside");
      taken.push_back(box);
      return true;
    }
    return false;
  }

  // Writes the name of each dot on its right, on its left, above or below it, wherever there is space. If there is no space,
  // the name is left out. Names are placed in the order of the dots.
  void draw_dots() {
    std::vector<const Point*> dots;
    std::vector<Box> taken;
    for (const Line& line : chart_.lines)
      for (const Point& point : line.points)
        if (line.kind == Line::Kind::dots && holds(point)) {
          const double x = across(point.x), y = down(point.y);
          dots.push_back(&point);
          taken.push_back({x - 4, y - 4, x + 4, y + 4});
        }
    for (const Point* dot : dots) {
      const double x = across(dot->x), y = down(dot->y), wide = text_width(dot->name);
      if (y_.holds(dot->low) && y_.holds(dot->high)) interval(*dot, "quiet");
      canvas_.add(fmt::format("<circle class=\"dot\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4.2\"/>\n", x, y));
      canvas_.hover(x, y, words_for(dot->name, *dot));
      for (const Box& box :
           {Box{x + 7, y - 8, x + 7 + wide, y + 6}, Box{x - 7 - wide, y - 8, x - 7, y + 6},
            Box{x - wide / 2, y - 21, x + wide / 2, y - 7}, Box{x - wide / 2, y + 7, x + wide / 2, y + 21}}) {
        const bool inside = box.left >= left_ && box.right <= canvas_.width() && box.top >= top - 6 && box.bottom <= bottom;
        if (!inside || std::ranges::any_of(taken, [&](const Box& other) { return box.meets(other); })) continue;
        canvas_.text(box.left, box.top + 12, dot->name, "beside");
        taken.push_back(box);
        break;
      }
    }
  }

  static constexpr int digits = 5;  // significant digits of the value in a tooltip

  const LineChart& chart_;
  Looks& looks_;
  const double right_;
  Canvas canvas_;
  Scale x_, y_;
  double left_ = 24;
};

}  // namespace

// Keeps the first and the last point. Divides the points between them into intervals, and keeps the lowest and the highest
// point of each interval, in the original order. NaN counts as the highest value, so that gaps are kept.
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

std::string draw(const LineChart& chart, Looks& looks, double width) { return Plot(chart, looks, width).draw(); }

}  // namespace chorale::report
