#include "experiments/report/launch_events.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "src/base/text.hpp"

namespace chorale::report {

bool LaunchEvent::is_interruption() const {
  constexpr const char* kinds[] = {"died", "hung", "host_gone", "failed", "resized"};
  return std::ranges::any_of(kinds, [&](const char* one) { return kind == one; });
}

double LaunchEvent::seconds_to_step() const { return is_interruption() ? end + choose + first_step : first_step; }

std::string LaunchEvent::name() const {
  const std::string what = replace_all(kind, '_', ' ');
  if (kind == "host_gone" && !host.empty()) return what + ": " + host;
  return rank >= 0 ? fmt::format("{}: rank {:.0f}", what, rank) : what;
}

std::string LaunchEvent::change() const {
  if (from_layout.empty() || to_layout.empty() || from_layout == to_layout)
    return from_layout.empty() ? to_layout : from_layout;
  return from_layout + " → " + to_layout;
}

std::vector<LaunchEvent> launch_events_of(const RecordedRun& run) {
  const RecordGroup group = run.group("events");
  std::vector<LaunchEvent> events(group.words("kind").size());
  const auto words = [&](const char* column, std::string LaunchEvent::*field) {
    const std::vector<std::string> cells = group.words(column);
    for (std::size_t i = 0; i < std::min(events.size(), cells.size()); ++i) events[i].*field = cells[i];
  };
  const auto numbers = [&](const char* column, double LaunchEvent::*field) {
    const std::vector<double> cells = group.numbers(column);
    for (std::size_t i = 0; i < std::min(events.size(), cells.size()); ++i) events[i].*field = cells[i];
  };
  words("kind", &LaunchEvent::kind);
  words("host", &LaunchEvent::host);
  words("why", &LaunchEvent::why);
  words("from_layout", &LaunchEvent::from_layout);
  words("to_layout", &LaunchEvent::to_layout);
  words("source", &LaunchEvent::source);
  numbers("t", &LaunchEvent::t);
  numbers("step", &LaunchEvent::step);
  numbers("rank", &LaunchEvent::rank);
  numbers("lost_steps", &LaunchEvent::lost_steps);
  numbers("detect_s", &LaunchEvent::detect);
  numbers("end_s", &LaunchEvent::end);
  numbers("choose_s", &LaunchEvent::choose);
  numbers("start_s", &LaunchEvent::start);
  numbers("load_s", &LaunchEvent::load);
  numbers("first_step_s", &LaunchEvent::first_step);
  return events;
}

std::vector<LayoutPeriod> layout_periods_of(const std::vector<LaunchEvent>& events) {
  std::vector<LayoutPeriod> periods;
  for (const LaunchEvent& event : events)
    if (std::isfinite(event.first_step) && (periods.empty() || periods.back().layout != event.to_layout))
      periods.push_back({event.to_layout, event.step});
  return periods;
}

bool changed_layout(const RecordedRun& run) { return layout_periods_of(launch_events_of(run)).size() > 1; }

std::string restarts_in_words(const std::vector<LaunchEvent>& events) {
  std::map<std::string, int> kinds;
  int restarts = 0;
  for (const LaunchEvent& event : events)
    if (event.is_restart()) {
      ++restarts;
      ++kinds[replace_all(event.kind, '_', ' ')];
    }
  std::vector<std::string> words;
  for (const auto& [kind, count] : kinds) words.push_back(fmt::format("{} {}", count, kind));
  return restarts == 0 ? "none" : fmt::format("{} ({})", restarts, join(words, ", "));
}

double lost_steps_of(const std::vector<LaunchEvent>& events) {
  double lost = 0;
  for (const LaunchEvent& event : events)
    if (event.is_restart()) lost += event.lost_steps;
  return lost;
}

double standstill_of(const std::vector<LaunchEvent>& events) {
  double seconds = 0;
  for (std::size_t i = 0; i < events.size(); ++i) {
    if (!events[i].is_restart()) continue;
    if (const double to_step = events[i].seconds_to_step(); std::isfinite(to_step))
      seconds += to_step;
    else if (i + 1 < events.size())  // the next start ended before its first new step
      seconds += events[i + 1].t - events[i].t;
  }
  return seconds;
}

}  // namespace chorale::report
