#include <fmt/format.h>

#include <algorithm>

#include "parallel/pipeline/drawing.hpp"
#include "src/base/text.hpp"

namespace chorale {
namespace {

constexpr double left = 72, right = 24, head = 78, panel_head = 30, lane_height = 34, bar_height = 28;
constexpr double headline_height = 32, axis_height = 44, tick_width = 80;
constexpr double digit_width = 7.5;  // width of a digit in a label

// The colors are safe for color-blind readers. The colors also differ in grayscale: forward passes are dark, backward passes
// are light, and weight gradients are hatched. Every rule begins with .pipeline, so the style changes nothing else on a
// page.
constexpr const char* style = R"svg(  <style>
    .pipeline { background: #ffffff; color-scheme: light dark; font: 13px sans-serif }
    .pipeline text { fill: #1c2430 } .pipeline .quiet { fill: #5c6878 } .pipeline .lane { fill: #eef1f5 }
    .pipeline .axis { stroke: #9aa4b1; fill: none }
    .pipeline .forward { fill: #0062a3 } .pipeline .backward { fill: #f2b134 }
    .pipeline .bar { stroke: #ffffff } .pipeline .label { font-size: 12px; text-anchor: middle }
    @media (prefers-color-scheme: dark) {
      .pipeline { background: #12161c }
      .pipeline text { fill: #e6eaf0 } .pipeline .quiet { fill: #98a4b3 }
      .pipeline .axis { stroke: #5b6675 }
      .pipeline .lane { fill: #1d232c } .pipeline .bar { stroke: #12161c }
    }
    .pipeline .on_forward { fill: #ffffff } .pipeline .on_backward, .pipeline .on_weights { fill: #1c2430 }
  </style>
)svg";

// The hatching of weight-gradient passes. On a page, pictures of equal width share one SVG pattern. Pictures of different
// widths use separate patterns, because one of the pictures can be hidden, and a browser does not draw a pattern that a
// hidden picture defines.
constexpr const char* hatching =
    R"svg(  <defs><pattern id="hatched{}" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
    <rect width="6" height="6" fill="#7ccdb4"/><rect width="2" height="6" fill="#3fa98a"/></pattern></defs>
)svg";

class PipelineDrawing {
 public:
  PipelineDrawing(const std::vector<PipelinePanel>& panels, const PipelineFrame& frame)
      : panels_(panels), frame_(frame), longest_(frame.seconds), legend_top_(frame.headline ? 42 : 42 - headline_height) {
    for (const PipelinePanel& panel : panels) longest_ = std::max(longest_, panel.timeline.seconds());
  }

  std::string draw(const std::string& title) const {
    double y = frame_.headline ? head : head - headline_height;
    std::string body = legend();
    for (const PipelinePanel& panel : panels_) {
      body += draw_panel(panel, y);
      y += panel_head + lane_height * static_cast<double>(panel.timeline.stages);
    }
    body += axis(y);
    return fmt::format(
               "<svg class=\"pipeline\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" role=\"img\">\n"
               "  <title>{}</title>\n  <desc>{}</desc>\n{}",
               frame_.width, y + axis_height, escape_xml(title), escape_xml(description()), style) +
           fmt::format(hatching, frame_.width) +
           (frame_.headline ? fmt::format("  <text x=\"16\" y=\"26\" font-size=\"17\">{}</text>\n", escape_xml(title))
                            : "") +
           body + "</svg>\n";
  }

 private:
  std::string description() const {
    std::string text = "One lane per stage; time runs to the right; one bar per pass, with the number of its micro-batch.";
    for (const PipelinePanel& panel : panels_) {
      const std::int64_t stages = panel.timeline.stages;
      text += fmt::format(" {}: {} stage{}, {}.", panel.name, stages, stages == 1 ? "" : "s", length_of(panel));
    }
    return text;
  }

  static std::string length_of(const PipelinePanel& panel) {
    return fmt::format("{:.4g}{} long, idle {:.1f} % of the time", panel.timeline.seconds(), panel.unit,
                       100 * panel.timeline.bubble());
  }

  // Draws the time axis below all panels, with labels such as "0 200 ms 400 ms". If times are multiples of a forward pass,
  // labels have no unit.
  std::string axis(double y) const {
    const bool in_seconds =
        std::any_of(panels_.begin(), panels_.end(), [](const auto& panel) { return !panel.unit.empty(); });
    std::string svg = fmt::format("  <path class=\"axis\" d=\"M{} {}H{:.1f}\"/>\n", left, y, x_of(longest_));
    const double tick = longest_ > 0 ? round_step(longest_ * tick_width / (frame_.width - left - right)) : 1;
    for (int i = 0; i * tick <= longest_ * (1 + 1e-9); ++i) {
      const double x = x_of(i * tick);
      svg += fmt::format("  <path class=\"axis\" d=\"M{:.1f} {}v5\"/>\n", x, y);
      svg += fmt::format("  <text class=\"label quiet\" x=\"{:.1f}\" y=\"{}\">{}</text>\n", x, y + 18,
                         in_seconds && i > 0 ? human_seconds(i * tick) : fmt::format("{:g}", i * tick));
    }
    return svg + fmt::format("  <text class=\"label quiet\" x=\"{:.1f}\" y=\"{}\">{}</text>\n", (left + x_of(longest_)) / 2,
                             y + 36, in_seconds ? "time from the first pass" : "time, in forward passes");
  }

  std::string legend() const {
    std::string svg;
    double x = 16;
    for (const char* name : pass_names) {
      svg += fmt::format("  <rect {} x=\"{}\" y=\"{}\" width=\"18\" height=\"14\"/>\n", look_of(name), x, legend_top_);
      svg += fmt::format("  <text x=\"{}\" y=\"{}\">{}</text>\n", x + 24, legend_top_ + 12, name);
      x += 110;
    }
    return svg;
  }

  std::string draw_panel(const PipelinePanel& panel, double y) const {
    std::string svg = fmt::format("  <text x=\"16\" y=\"{}\" class=\"quiet\">{}</text>\n", y + 16,
                                  escape_xml(panel.name + ": " + length_of(panel)));
    const auto top = [&](std::int64_t stage) { return y + panel_head + lane_height * static_cast<double>(stage) - 4; };
    for (std::int64_t stage = 0; stage < panel.timeline.stages; ++stage) {
      svg += fmt::format("  <text x=\"16\" y=\"{}\">stage {}</text>\n", top(stage) + 19, stage);
      svg += fmt::format("  <rect class=\"lane\" x=\"{}\" y=\"{}\" width=\"{:.1f}\" height=\"{}\"/>\n", left, top(stage),
                         x_of(panel.timeline.seconds()) - left, bar_height);
    }
    for (const PipelineEvent& event : panel.timeline.events) svg += bar(panel, event, top(event.stage));
    return svg;
  }

  std::string look_of(const std::string& classes) const {
    return fmt::format("class=\"{}\"{}", classes,
                       classes.ends_with("weights") ? fmt::format(" fill=\"url(#hatched{})\"", frame_.width) : "");
  }

  // Draws one pass as a bar. Later chunks are paler.
  std::string bar(const PipelinePanel& panel, const PipelineEvent& event, double top) const {
    const PipelineTimeline& timeline = panel.timeline;
    const std::string label = label_of(event.action, timeline.chunks);
    const std::string kind = pass_names[static_cast<std::size_t>(event.action.kind)];
    const double x = x_of(event.begins - timeline.begins()), wide = x_of(event.ends - timeline.begins()) - x;
    const double paler = 0.45 * static_cast<double>(event.action.chunk) / static_cast<double>(timeline.chunks);
    std::string svg = fmt::format(
        "  <rect {} x=\"{:.1f}\" y=\"{}\" width=\"{:.1f}\" height=\"{}\" fill-opacity=\"{:.2f}\" "
        "stroke-width=\"{:.2f}\">"
        "<title>stage {}, {} {}: {:.4g} to {:.4g}{}</title></rect>\n",
        look_of("bar " + kind), x, top, std::max(0.5, wide), bar_height, 1 - paler, std::min(1.0, wide / 4), event.stage,
        kind, label, event.begins, event.ends, panel.unit);
    if (wide > digit_width * static_cast<double>(label.size()) + 3)
      svg += fmt::format("  <text class=\"label on_{}\" x=\"{:.1f}\" y=\"{}\">{}</text>\n", kind, x + wide / 2, top + 18.5,
                         label);
    return svg;
  }

  double x_of(double seconds) const {
    return left + (longest_ > 0 ? seconds / longest_ : 0) * (frame_.width - left - right);
  }

  const std::vector<PipelinePanel>& panels_;
  const PipelineFrame& frame_;
  double longest_, legend_top_;
};

}  // namespace

std::string draw_svg(const std::vector<PipelinePanel>& panels, const std::string& title, const PipelineFrame& frame) {
  return PipelineDrawing(panels, frame).draw(title);
}

}  // namespace chorale
