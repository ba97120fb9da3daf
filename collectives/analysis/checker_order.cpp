// The part of the checker that examines the order of steps. This part finds hazards, which are conflicting steps of a rank
// that are not ordered. This part also finds deadlocks between ranks, and steps that access elements outside their buffers.
#include <fmt/format.h>

#include "collectives/analysis/checker.hpp"
#include "collectives/analysis/flow.hpp"

namespace chorale {
namespace {

// For each step, stores the set of earlier steps that have completed before the step begins, as one bit per earlier step.
class Before {
 public:
  explicit Before(std::size_t steps) : words_((steps + 63) / 64), bits_(words_ * steps, 0) {}
  void add(std::size_t step, std::size_t earlier) {
    for (std::size_t w = 0; w < words_; ++w) bits_[step * words_ + w] |= bits_[earlier * words_ + w];
    bits_[step * words_ + earlier / 64] |= std::uint64_t{1} << (earlier % 64);
  }
  bool has(std::size_t step, std::size_t earlier) const { return bits_[step * words_ + earlier / 64] >> (earlier % 64) & 1; }

 private:
  std::size_t words_;
  std::vector<std::uint64_t> bits_;
};

struct Element {
  int writer = -1;                   // the step that wrote this element last, or −1 if there is none
  std::vector<std::size_t> readers;  // steps that have read the element since then
};

std::string find_outside(const Lineup& lineup, const Schedule& schedule, std::size_t s) {
  const Step& step = schedule.steps[s];
  const auto outside = [&](const char* what, const Range& range) {
    return fmt::format("{}: {} outside its buffer, elements [{}..{})", at(schedule, s), what, range.first,
                       range.first + range.count);
  };
  for (const Range& range : step.src)
    if (!lineup.holds(range)) return outside("reads", range);
  return lineup.holds(step.dst) ? "" : outside("writes", step.dst);
}

}  // namespace

// If two steps of a rank access the same element and one of the two steps writes it, the lists `after` must order the two
// steps. The planning code derives dependencies from ranges (last_access.hpp). This check examines single elements instead,
// so it can find bugs in the planning code.
std::string find_hazard(const Schedule& schedule) {
  const Lineup lineup(schedule);
  Before before(schedule.steps.size());
  std::vector<Element> elements(lineup.size());
  for (std::size_t s = 0; s < schedule.steps.size(); ++s) {
    const Step& step = schedule.steps[s];
    for (const int earlier : step.after) {
      if (earlier < 0 || static_cast<std::size_t>(earlier) >= s)
        return fmt::format("{}: waits for step {}, which does not come before it", at(schedule, s), earlier);
      before.add(s, static_cast<std::size_t>(earlier));
    }
    if (const std::string trouble = find_outside(lineup, schedule, s); !trouble.empty()) return trouble;
    const auto missing = [&](std::size_t earlier) {
      return fmt::format("{}: conflicts with step {} and does not wait for it", at(schedule, s), earlier);
    };
    for (const Range& range : step.src)
      for (std::int64_t i = 0; i < range.count; ++i) {
        Element& element = elements[lineup.at(range.place, range.first + i)];
        if (element.writer >= 0 && !before.has(s, static_cast<std::size_t>(element.writer)))
          return missing(static_cast<std::size_t>(element.writer));
        element.readers.push_back(s);
      }
    if (step.kind == Kind::send) continue;
    for (std::int64_t i = 0; i < step.dst.count; ++i) {
      Element& element = elements[lineup.at(step.dst.place, step.dst.first + i)];
      for (const std::size_t reader : element.readers)
        if (reader != s && !before.has(s, reader)) return missing(reader);
      if (element.writer >= 0 && !before.has(s, static_cast<std::size_t>(element.writer)))
        return missing(static_cast<std::size_t>(element.writer));
      element = {static_cast<int>(s), {}};
    }
  }
  return "";
}

// Without buffering, a send ends only after its receive has begun, and a receive ends only after its send has begun. If no
// step can begin or end any more, the remaining steps are deadlocked.
std::string find_deadlock(const StepGraph& graph) {
  const Walked nothing = [](std::size_t, std::size_t) {};
  const auto [rank, step] = walk(graph, false, nothing, nothing);
  if (rank < 0) return "";
  return fmt::format("{}: deadlock when sends wait for their receives",
                     at(graph.ranks()[static_cast<std::size_t>(rank)], static_cast<std::size_t>(step)));
}

}  // namespace chorale
