#include <fmt/format.h>

#include <algorithm>

#include "collectives/analysis/drawing.hpp"
#include "collectives/schedule/lanes.hpp"
#include "src/base/text.hpp"

namespace chorale {
namespace {

constexpr double left = 72, right = 24, top = 56, lane_height = 48, width = 960;

constexpr const char* style = R"(  <style>
    svg { background: #ffffff; color-scheme: light dark; font: 13px sans-serif }
    text { fill: #1c2430 } .quiet { fill: #5c6878 } .lane { stroke: #c3cad4 }
    .message { stroke: #1f6fb2; stroke-width: 1.5; fill: none } .tip { fill: #1f6fb2 } .between { stroke-dasharray: 6 3 }
    .sum { fill: #c2571a } .send { fill: #1f6fb2; fill-opacity: 0.35 }
    @media (prefers-color-scheme: dark) {
      svg { background: #12161c }
      text { fill: #e6eaf0 } .quiet { fill: #98a4b3 } .lane { stroke: #3d4652 }
      .message { stroke: #6db3ee } .tip { fill: #6db3ee } .sum { fill: #f0995c } .send { fill: #6db3ee }
    }
  </style>
)";

double lane(int rank) { return top + lane_height * (rank + 0.5); }

class SvgDrawing {
 public:
  SvgDrawing(const std::vector<Schedule>& ranks, std::int64_t element_bytes, const Price& price)
      : ranks_(ranks),
        lanes_(ranks.at(0).problem()),
        element_bytes_(element_bytes),
        timeline_(simulate(ranks, element_bytes, price)) {}

  std::string draw(const std::string& title) const {
    const double height = lane(static_cast<int>(ranks_.size())) + 12;
    std::string svg = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" role=\"img\" aria-labelledby=\"title what\">\n"
        "  <title id=\"title\">{}</title>\n  <desc id=\"what\">{}</desc>\n{}",
        width, height, escape_xml(title), description(), style);
    svg +=
        "  <defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" "
        "orient=\"auto\"><path class=\"tip\" d=\"M0 0 L8 4 L0 8 z\"/></marker></defs>\n";
    svg += fmt::format("  <text x=\"16\" y=\"24\" font-size=\"16\">{}</text>\n", escape_xml(title));
    svg += fmt::format("  <text x=\"16\" y=\"42\" class=\"quiet\">{}</text>\n", description());
    for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) svg += lane_of(rank);
    for (const Timeline::Transfer& transfer : timeline_.transfers) svg += arrow(transfer);
    return svg + "</svg>\n";
  }

 private:
  double x(double seconds) const {
    return left + (timeline_.seconds > 0 ? seconds / timeline_.seconds : 0) * (width - left - right);
  }

  std::string description() const {
    return fmt::format(
        "{} rank{}, one lane each; time runs to the right; {} message{} as arrows{}; sums above each lane, sends below it",
        ranks_.size(), ranks_.size() == 1 ? "" : "s", timeline_.transfers.size(), timeline_.transfers.size() == 1 ? "" : "s",
        one_host() ? "" : ", dashed between hosts");
  }

  std::string lane_of(int rank) const {
    const double y = lane(rank);
    const std::string host = one_host() ? "" : fmt::format("n{}, ", lanes_.host_of(rank));
    std::string svg = fmt::format("  <text x=\"8\" y=\"{}\">{}rank {}</text>\n", y + 4, host, rank);
    svg += fmt::format("  <line class=\"lane\" x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"/>\n", left, y, width - right, y);
    const auto& steps = ranks_[static_cast<std::size_t>(rank)].steps;
    for (std::size_t s = 0; s < steps.size(); ++s) {
      const bool sums = steps[s].kind == Kind::recv_reduce || steps[s].kind == Kind::reduce;
      if (!sums && steps[s].kind != Kind::send) continue;
      const Timeline::Span& span = timeline_.spans[static_cast<std::size_t>(rank)][s];
      svg +=
          fmt::format("  <rect class=\"{}\" x=\"{:.1f}\" y=\"{}\" width=\"{:.1f}\" height=\"6\"><title>{}</title></rect>\n",
                      sums ? "sum" : "send", x(span.begins), sums ? y - 6 : y, std::max(2.0, x(span.ends) - x(span.begins)),
                      words_for(steps[s]));
    }
    return svg;
  }

  std::string words_for(const Step& step) const {
    const Range& range = step.kind == Kind::send ? step.src.at(0) : step.dst;
    const std::string peers =
        step.peers.empty()  // a local step
            ? ""
            : fmt::format(" {} {}", step.kind == Kind::send ? "to" : "from", fmt::join(step.peers, ", "));
    return fmt::format("{}{}: {} bytes", kind_names[static_cast<std::size_t>(step.kind)], peers,
                       range.count * element_bytes_);
  }

  std::string arrow(const Timeline::Transfer& transfer) const {
    const Message& m = transfer.message;
    return fmt::format(
        "  <line class=\"message{}\" marker-end=\"url(#tip)\" x1=\"{:.1f}\" y1=\"{}\" x2=\"{:.1f}\" y2=\"{}\">"
        "<title>{} → {}</title></line>\n",
        lanes_.host_of(m.from) == lanes_.host_of(m.to) ? "" : " between", x(transfer.leaves), lane(m.from),
        x(transfer.is_in), lane(m.to), m.from, m.to);
  }

  bool one_host() const { return lanes_.hosts() == 1; }

  const std::vector<Schedule>& ranks_;
  const Lanes lanes_;
  std::int64_t element_bytes_;
  Timeline timeline_;
};

}  // namespace

std::string draw_svg(const std::vector<Schedule>& ranks, const std::string& title, std::int64_t element_bytes,
                     const Price& price) {
  return SvgDrawing(ranks, element_bytes, price).draw(title);
}

}  // namespace chorale
