// The part of the checker that examines single steps. This part checks that each step has the form that backends expect.
// Backends do not check the form of steps. Backends use peers as array indices, and read only the first source range of
// every step except a reduce. So a backend would silently misinterpret a malformed step.
//
//   kind         peers          source ranges            target
//   send         one or more    one                      none
//   recv         one            none                     dst
//   recv_reduce  one or more    one: the rank's own      dst
//   reduce       none           one or more              dst
//   copy         none           one                      dst
#include <fmt/format.h>

#include <algorithm>

#include "collectives/analysis/checker.hpp"
#include "collectives/analysis/flow.hpp"

namespace chorale {
namespace {

std::string strange_peers(const Step& step, const Problem& problem) {
  const std::size_t peers = step.peers.size();
  const bool is_local = step.kind == Kind::reduce || step.kind == Kind::copy;
  if (is_local && peers > 0) return fmt::format("has {} peers, but its kind has none", peers);
  if (step.kind == Kind::recv && peers != 1) return fmt::format("receives from {} peers instead of 1", peers);
  if (!is_local && peers == 0) return "has no peer";
  for (const int peer : step.peers) {
    if (peer == problem.rank) return "is a message to its own rank";
    if (peer < 0 || peer >= problem.size) return fmt::format("names rank {}, but there are {} ranks", peer, problem.size);
  }
  const bool ascend = std::adjacent_find(step.peers.begin(), step.peers.end(), std::greater_equal<>()) == step.peers.end();
  return ascend ? "" : "names its peers out of rank order, or names a peer twice";
}

std::string strange_sources(const Step& step) {
  const std::size_t sources = step.src.size();
  if (step.kind == Kind::reduce) return sources > 0 ? "" : "reduces nothing";
  const std::size_t wanted = step.kind == Kind::recv ? 0 : 1;
  return sources == wanted ? "" : fmt::format("has {} source ranges instead of {}", sources, wanted);
}

// Backends process the elements of a step in any order, several elements at a time. So if source and target overlap, they
// must be the same range. If the two ranges are the same, a step overwrites an element only after it has read the element.
std::string strange_result(const Step& step, const Problem& problem, const Lineup& lineup) {
  if (step.kind == Kind::send) return "";
  if (step.dst.place == Place::input && !problem.in_place) return "writes the input, which belongs to the caller";
  const auto start = [&](const Range& range) { return lineup.at(range.place, range.first); };
  for (const Range& range : step.src)
    if (overlap(problem, range, step.dst) && (start(range) != start(step.dst) || range.count != step.dst.count))
      return "its source and destination overlap but differ";
  return "";
}

}  // namespace

std::string find_misshapen(const Schedule& schedule) {
  const Lineup lineup(schedule);
  for (std::size_t s = 0; s < schedule.steps.size(); ++s) {
    const Step& step = schedule.steps[s];
    std::string trouble = strange_peers(step, schedule.problem());
    if (trouble.empty()) trouble = strange_sources(step);
    if (trouble.empty()) trouble = strange_result(step, schedule.problem(), lineup);
    if (!trouble.empty()) return fmt::format("{}: {}", at(schedule, s), trouble);
  }
  return "";
}

}  // namespace chorale
