#include "experiments/report/figures/pareto.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/common/each.hpp"
#include "src/base/text.hpp"

namespace chorale::report {
namespace {

constexpr std::size_t most_in_front = 6;

bool known(const RunDot& one) { return std::isfinite(one.memory) && std::isfinite(one.value); }

// The best value of the front within a given memory, drawn as a staircase from dot to dot.
Line border_of(const std::vector<RunDot>& all, const std::vector<std::size_t>& front) {
  Line border{"Pareto front", {}, Line::Kind::limit};
  for (const std::size_t i : front) {
    if (!border.points.empty()) border.points.push_back({all[i].memory, border.points.back().y});
    border.points.push_back({all[i].memory, all[i].value});
  }
  return border;
}

std::string words_for(const std::vector<RunDot>& all, const std::vector<std::size_t>& front, const std::string& quality) {
  const auto seen = std::ranges::count_if(all, known);
  if (front.size() > most_in_front)
    return fmt::format("{} of {} runs are on the Pareto front of {} and memory.", front.size(), seen, quality);
  std::vector<std::string> names = each(front, [&](std::size_t i) { return all[i].label; });
  if (names.size() == 1 && seen < std::ssize(all))
    return fmt::format("Among the runs whose memory is known, {} is the best in {} and memory.", names[0], quality);
  if (names.size() == 1) return fmt::format("{} also needs the least memory.", names[0]);
  const std::string last = names.back();
  names.pop_back();
  return fmt::format("On the Pareto front of {} and memory: {} and {}.", quality, join(names, "; "), last);
}

}  // namespace

std::vector<std::size_t> pareto_front(const std::vector<RunDot>& all, bool highest_is_best) {
  const auto better = [&](double a, double b) { return highest_is_best ? a > b : a < b; };
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (known(all[i])) order.push_back(i);
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    return all[a].memory != all[b].memory ? all[a].memory < all[b].memory : better(all[a].value, all[b].value);
  });
  std::vector<std::size_t> front;
  for (const std::size_t i : order) {
    const bool equals =
        !front.empty() && all[front.back()].memory == all[i].memory && all[front.back()].value == all[i].value;
    if (front.empty() || equals || better(all[i].value, all[front.back()].value)) front.push_back(i);
  }
  return front;
}

std::optional<Tradeoff> tradeoff_of(const std::vector<RunDot>& all, const Criterion& criterion) {
  if (std::ranges::count_if(all, known) < 2) return {};
  const std::vector<std::size_t> front = pareto_front(all, criterion.highest_is_best);
  LineChart chart{
      fmt::format("{} against memory", criterion.title),
      fmt::format("One dot per run: its {} by the memory of its fullest rank. A dashed line joins the Pareto front.",
                  criterion.name),
      {.name = "memory/rank", .unit = Unit::bytes},
      {.name = criterion.name, .unit = criterion.unit},
      {border_of(all, front)},
      "",
      criterion.highest_is_best ? "better: up and left" : "better: down and left"};
  Line dots{"runs", {}, Line::Kind::dots};
  const auto add = [&](std::size_t i) {
    dots.points.push_back({all[i].memory, all[i].value, all[i].low, all[i].high, all[i].label});
  };
  for (const std::size_t i : front) add(i);  // the front first, so that its names get the best positions
  for (std::size_t i = 0; i < all.size(); ++i)
    if (!std::ranges::count(front, i)) add(i);
  chart.lines.push_back(std::move(dots));
  return Tradeoff{std::move(chart), words_for(all, front, lower(criterion.title))};
}

}  // namespace chorale::report
