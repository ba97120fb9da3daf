#include <chorale/schedule.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "collectives/schedule/each_message.hpp"
#include "collectives/schedule/last_access.hpp"
#include "src/base/error.hpp"
#include "src/base/text.hpp"

namespace chorale {
namespace {

// Returns the index of a range's first element. In an in-place call, the index counts from the start of the vector that
// input and output share.
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

bool same_start(const Problem& problem, const Range& a, const Range& b) {
  return same_buffer(problem, a, b) && home(problem, a) == home(problem, b);
}

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

Schedule::Schedule(const Problem& problem) : problem_(problem), last_access_(3) {}
Schedule::Schedule(const Schedule&) = default;
Schedule::Schedule(Schedule&&) noexcept = default;
Schedule& Schedule::operator=(const Schedule&) = default;
Schedule& Schedule::operator=(Schedule&&) noexcept = default;
Schedule::~Schedule() = default;

void Schedule::copy(Range from, Range into) {
  if (same_start(problem_, from, into)) return;
  add({Kind::copy, {}, {from}, into, {}, round_});
}

Range Schedule::scratch(std::int64_t count) {
  scratch_ += count;
  return {Place::scratch, scratch_ - count, count};
}

void Schedule::wait_for_all() {
  const int end = static_cast<int>(steps.size());
  if (end != fence_) fence_before_ = std::exchange(fence_, end);
}

LastAccess& Schedule::last_access(const Range& range) {
  const bool shared = problem_.in_place && range.place == Place::output;
  return last_access_[static_cast<std::size_t>(shared ? Place::input : range.place)];
}

int Schedule::add(Step step, const std::vector<int>& ordered) {
  if ((step.kind == Kind::send ? step.src.at(0) : step.dst).count == 0) return -1;
  const int number = static_cast<int>(steps.size());
  std::sort(step.peers.begin(), step.peers.end());
  std::vector<int> earlier = ordered;
  for (const Range& range : step.src) last_access(range).read(home(problem_, range), range.count, number, earlier);
  if (step.kind != Kind::send) last_access(step.dst).write(home(problem_, step.dst), step.dst.count, number, earlier);
  for (int before = fence_before_; before < fence_; ++before) earlier.push_back(before);
  step.after = needed(earlier);
  steps.push_back(std::move(step));
  return number;
}

// `earlier` holds the steps that a new step must wait for. This function sorts `earlier`, and returns `earlier` without the
// redundant steps. A step is redundant if another step in `earlier` already waits for it, directly or indirectly.
std::vector<int> Schedule::needed(std::vector<int>& earlier) const {
  std::sort(earlier.begin(), earlier.end(), std::greater<>());
  earlier.erase(std::unique(earlier.begin(), earlier.end()), earlier.end());
  if (earlier.size() < 2) return earlier;
  const int last = earlier.back();
  std::vector<bool> implied(static_cast<std::size_t>(earlier.front() - last + 1), false);
  std::vector<int> named;
  auto next = earlier.begin();
  for (int step = earlier.front(); step >= last; --step) {
    const bool wanted = next != earlier.end() && *next == step;
    if (wanted) ++next;
    if (!wanted && !implied[static_cast<std::size_t>(step - last)]) continue;
    if (!implied[static_cast<std::size_t>(step - last)]) named.push_back(step);
    for (const int before : steps[static_cast<std::size_t>(step)].after)
      if (before >= last) implied[static_cast<std::size_t>(before - last)] = true;
  }
  std::reverse(named.begin(), named.end());
  return named;
}

void Schedule::append(const Schedule& part, const std::vector<int>& members, Range input, Range output) {
  const Range rest = scratch(part.scratch_count());
  const int first_round = round_;
  std::vector<int> numbers, ordered;
  for (Step step : part.steps) {
    for (int& peer : step.peers) peer = members[static_cast<std::size_t>(peer)];
    const auto move = [&](Range& range) {
      const Range& into = range.place == Place::input ? input : range.place == Place::output ? output : rest;
      range.place = into.place;
      range.first += into.first;
    };
    for (Range& range : step.src) move(range);
    move(step.dst);
    ordered.clear();
    for (const int before : step.after) ordered.push_back(numbers[static_cast<std::size_t>(before)]);
    step.round += first_round;
    round_ = std::max(round_, step.round);
    numbers.push_back(add(std::move(step), ordered));
  }
}

std::int64_t Schedule::elements_sent() const {
  std::int64_t sum = 0;
  each_message(*this, [&](int, std::int64_t elements) { sum += elements; });
  return sum;
}

std::int64_t Schedule::elements_crossing() const {
  const std::vector<int>& hosts = problem_.hosts;
  if (hosts.empty()) return 0;
  const auto host_of = [&](int rank) { return hosts.at(static_cast<std::size_t>(rank)); };
  std::int64_t sum = 0;
  each_message(*this, [&](int peer, std::int64_t elements) {
    if (host_of(peer) != host_of(problem_.rank)) sum += elements;
  });
  return sum;
}

std::string Schedule::describe() const {
  std::string text;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    std::vector<std::string> from;
    for (const Range& range : step.src) from.push_back(words_for(range));
    std::string what = join(from, " + ");
    if (step.kind == Kind::recv_reduce) what += " + received";
    if (step.kind != Kind::send) what += (what.empty() ? "" : " → ") + words_for(step.dst);
    text += fmt::format(
        "{:4}  {:<11}  {:<12}  {}", i, step.put ? "put" : kind_names[static_cast<std::size_t>(step.kind)],
        step.peers.empty() ? "" : fmt::format("{} {}", step.kind == Kind::send ? "to" : "from", fmt::join(step.peers, ",")),
        what);
    if (!step.after.empty()) text += fmt::format("  after {}", fmt::join(step.after, ", "));
    text += "\n";
  }
  return text;
}

}  // namespace chorale
