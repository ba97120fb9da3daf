#include "collectives/schedule.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "src/base/error.hpp"
#include "src/base/text.hpp"

namespace chorale {
namespace {

// Where a range lies in the vector that input and output share when the problem is solved in place.
std::int64_t home(const Problem& problem, const Range& range) {
  if (!problem.in_place || range.place == Place::scratch) return range.first;
  return range.first + (range.place == Place::input ? problem.input_home() : problem.output_home());
}

bool same_buffer(const Problem& problem, const Range& a, const Range& b) {
  return a.place == b.place || (problem.in_place && a.place != Place::scratch && b.place != Place::scratch);
}

std::string words_for(const Range& range) {
  constexpr const char* names[] = {"input", "output", "scratch"};
  return fmt::format("{}[{}..{})", names[static_cast<std::size_t>(range.place)], range.first, range.first + range.count);
}

}  // namespace

bool overlap(const Problem& problem, const Range& a, const Range& b) {
  if (!same_buffer(problem, a, b)) return false;
  const std::int64_t start_a = home(problem, a), start_b = home(problem, b);
  return start_a < start_b + b.count && start_b < start_a + a.count;
}

bool conflict(const Problem& problem, const Step& a, const Step& b) {
  const auto writes_over = [&](const Step& writer, const Step& other) {
    if (writer.kind == Kind::send) return false;
    if (other.kind != Kind::send && overlap(problem, writer.dst, other.dst)) return true;
    return std::any_of(other.src.begin(), other.src.end(), [&](const Range& r) { return overlap(problem, writer.dst, r); });
  };
  return writes_over(a, b) || writes_over(b, a);
}

void Schedule::copy(Range from, Range into) {
  if (same_buffer(problem_, from, into) && home(problem_, from) == home(problem_, into)) return;
  add({Kind::copy, {}, {from}, into});
}

Range Schedule::scratch(std::int64_t count) {
  scratch_ += count;
  return {Place::scratch, scratch_ - count, count};
}

void Schedule::add(Step step) {
  if ((step.kind == Kind::send ? step.src.at(0) : step.dst).count == 0) return;
  step.round = round_;
  std::sort(step.peers.begin(), step.peers.end());
  // Backwards, leaving out what an already named step waits for: few names say all.
  std::vector<bool> implied(steps.size(), false);
  for (std::size_t earlier = steps.size(); earlier-- > 0;) {
    if (!implied[earlier] && conflict(problem_, steps[earlier], step)) {
      step.after.push_back(static_cast<int>(earlier));
      implied[earlier] = true;
    }
    if (implied[earlier])
      for (const int before : steps[earlier].after) implied[static_cast<std::size_t>(before)] = true;
  }
  std::reverse(step.after.begin(), step.after.end());
  steps.push_back(std::move(step));
}

std::int64_t Schedule::elements_sent() const {
  std::int64_t sum = 0;
  for (const Step& step : steps)
    if (step.kind == Kind::send) sum += step.src[0].count * static_cast<std::int64_t>(step.peers.size());
  return sum;
}

std::string Schedule::describe() const {
  std::string text;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    std::vector<std::string> from;
    for (const Range& range : step.src) from.push_back(words_for(range));
    std::string what = join(from, " + ");
    if (step.kind == Kind::recv_reduce) what += " + theirs";
    if (step.kind != Kind::send) what += (what.empty() ? "" : " → ") + words_for(step.dst);
    text += fmt::format(
        "{:4}  {:<11}  {:<12}  {}", i, kind_names[static_cast<std::size_t>(step.kind)],
        step.peers.empty() ? "" : fmt::format("{} {}", step.kind == Kind::send ? "to" : "from", fmt::join(step.peers, ",")),
        what);
    if (!step.after.empty()) text += fmt::format("  after {}", fmt::join(step.after, ", "));
    text += "\n";
  }
  return text;
}

}  // namespace chorale
