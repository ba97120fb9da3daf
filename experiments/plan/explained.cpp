#include "experiments/plan/explained.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "experiments/plan/ways_table.hpp"
#include "src/base/text.hpp"

namespace chorale::plan {
namespace {

// The kinds of work on which at least one of the two ways spends time.
std::set<std::string> names_in(const Shares& first, const Shares& second) {
  std::set<std::string> names;
  for (const Shares* shares : {&first, &second})
    for (const auto& [name, seconds] : *shares)
      if (seconds != 0) names.insert(name);
  return names;
}

// Rounds times to integer multiples of a unit that is small compared with the step, so that rounded values still add up.
class Rounded {
 public:
  explicit Rounded(double step) : digits_(std::clamp(3 - static_cast<int>(std::floor(std::log10(step))), 0, 9)) {}
  std::int64_t of(double seconds) const { return std::llround(seconds * std::pow(10, digits_)); }
  std::string text(std::int64_t units) const {
    return fmt::format("{:.{}f}", static_cast<double>(units) / std::pow(10, digits_), digits_);
  }

 private:
  int digits_;
};

// "4.46 s (products +3.24, wait: dp +0.92)". Lists the kinds of work whose time changed in the direction `sign`, the largest
// change first. `rest` is the sum of the kinds that are too small to be named.
std::string total_of(const std::vector<std::pair<std::int64_t, std::string>>& kinds, std::int64_t rest, int sign,
                     const Rounded& rounded) {
  std::int64_t total = 0;
  std::vector<std::string> words;
  const auto add = [&](std::int64_t units, const std::string& name) {
    if (units * sign <= 0) return;
    total += units * sign;
    words.push_back(fmt::format("{} {}{}", name, sign > 0 ? "+" : "−", rounded.text(units * sign)));
  };
  for (const auto& [units, name] : kinds) add(units, name);
  add(rest, "others");
  return words.empty() ? "" : fmt::format("{} s ({})", rounded.text(total), join(words, ", "));
}

std::string losses_and_gains(const Found& b, const Found& a) {
  const Shares first = mean_shares(a.step), second = mean_shares(b.step);
  const Rounded rounded(std::min(a.step.seconds, b.step.seconds));
  const std::int64_t difference = rounded.of(b.step.seconds) - rounded.of(a.step.seconds);
  std::int64_t rest = difference;
  std::vector<std::pair<std::int64_t, std::string>> kinds;
  for (const std::string& name : names_in(first, second)) {
    const std::int64_t units = rounded.of(share(second, name) - share(first, name));
    if (std::abs(units) < 2) continue;
    kinds.emplace_back(units, name);
    rest -= units;
  }
  std::ranges::stable_sort(kinds, [](const auto& x, const auto& y) { return std::abs(x.first) > std::abs(y.first); });
  const std::string loses = total_of(kinds, rest, 1, rounded), gains = total_of(kinds, rest, -1, rounded);
  std::vector<std::string> parts;
  if (!loses.empty()) parts.push_back("loses " + loses);
  if (!gains.empty()) parts.push_back("gains " + gains);
  return fmt::format("{} takes {} s {}{}{}\n", to_string(b.layout), rounded.text(std::abs(difference)),
                     difference < 0 ? "less" : "more", parts.empty() ? "" : ": it ", join(parts, " and "));
}

std::string memory_of(const Found& way, const SearchRequest& request) {
  const std::string needs = words_for_room(way.bytes, request.capacity);
  if (way.bytes <= request.memory) return needs + "\n";
  return fmt::format("it does not fit: {}; {} may be used, and no micro-batch or recomputation needs less\n", needs,
                     words_for_bytes(request.memory));
}

// Describes in a sentence how `b` compares with `a`.
std::string verdict_on(const Found& b, const Found& a, const SearchRequest& request) {
  const double ratio = b.step.seconds / a.step.seconds;
  std::string words =
      fmt::format("\n{}: {:.4g} s/step, {:.3g} times the time of\n{}: {:.4g} s/step{}\n", b.name(), b.step.seconds, ratio,
                  a.name(), a.step.seconds, std::abs(ratio - 1) <= planner_error ? " (~: within the planner's error)" : "");
  words += losses_and_gains(b, a) + memory_of(b, request);
  for (const Found* way : {&b, &a})
    if (!way->why_recompute.empty()) words += fmt::format("{}: {}\n", to_string(way->layout), way->why_recompute);
  return words;
}

void add_plain(Document& out, const Found& a, const Found& b, const SearchRequest& request, const Wording& as) {
  const Shares first = mean_shares(a.step), second = mean_shares(b.step);
  const std::set<std::string> names = names_in(first, second);
  std::vector<std::string> columns = columns_of_ways(request, as);
  columns.back() = "why_recompute";
  for (const std::string& name : names) columns.push_back(as.column(name, "s"));
  TextTable table(columns);
  for (const Found* way : {&a, &b}) {
    std::vector<std::string> row = row_of_way(*way, a, request, as);
    row.back() = way->why_recompute;
    for (const std::string& name : names) row.push_back(as.number(share(way == &a ? first : second, name)));
    table.add(row);
  }
  out.table("explained", table);
}

}  // namespace

void add_explained(Document& out, const Found& a, const Found& b, const SearchRequest& request, const Wording& as) {
  if (as.plain()) return add_plain(out, a, b, request, as);  // a row for each way
  if (a.name() == b.name())
    return out.words(
        fmt::format("\n{} is the fastest way itself: {:.4g} s/step\n{}", b.name(), b.step.seconds, memory_of(b, request)));
  const Shares first = mean_shares(a.step), second = mean_shares(b.step);
  TextTable table({"mean seconds of a rank", to_string(a.layout), to_string(b.layout), "difference"});
  const auto row = [&](const std::string& name, double x, double y) {
    table.add({name, as.number(x), as.number(y), fmt::format("{:+.4g}", y - x)});
  };
  for (const std::string& name : names_in(first, second)) row(name, share(first, name), share(second, name));
  row("the step", a.step.seconds, b.step.seconds);
  out.words(verdict_on(b, a, request) + "\n");
  out.table("explained", table);
}

}  // namespace chorale::plan
