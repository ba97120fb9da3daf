// Shows the events of launches (launch_events.hpp): a table of all events, and a stacked bar for each restart. The parts of
// a bar are the times from the last progress to the first new step. If there are many restarts, only the longest have bars.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/common/each.hpp"
#include "experiments/common/statistics.hpp"
#include "experiments/report/figures/figures.hpp"
#include "experiments/report/launch_events.hpp"
#include "src/base/text.hpp"

namespace chorale::report {
namespace {

constexpr std::size_t most_bars = 24;
constexpr double absent_time = 0;  // a bar leaves out parts without length

struct LaunchOfPage {
  const RecordedRun* run;
  std::vector<LaunchEvent> events;
};

const std::vector<std::string>& parts() {
  static const std::vector<std::string> names{"detect", "end", "choose", "start", "first step"};
  return names;
}

std::vector<double> parts_of(const LaunchEvent& event) {
  std::vector<double> seconds{event.detect_s, event.end_s, event.choose_s, event.start_s,
                              event.first_step_s - event.start_s};
  for (double& part : seconds) part = std::isfinite(part) ? std::max(0.0, part) : absent_time;
  return seconds;
}

double total_of(const Bar& bar) { return sum_of(bar.parts); }

std::vector<Bar> bars_of(const std::vector<LaunchOfPage>& launches) {
  std::vector<Bar> bars;
  for (const LaunchOfPage& launch : launches)
    for (const LaunchEvent& event : launch.events)
      if (event.is_restart())
        bars.push_back({.name = fmt::format("{}step {}, {}", launches.size() > 1 ? launch.run->label + ", " : "", event.step,
                                            event.name()),
                        .parts = parts_of(event)});
  return bars;
}

// Keeps the longest bars, in their order.
void keep_longest(std::vector<Bar>& bars, std::size_t most) {
  if (bars.size() <= most) return;
  std::vector<double> totals = each(bars, total_of);
  std::ranges::nth_element(totals, totals.begin() + static_cast<std::ptrdiff_t>(most) - 1, std::greater<>());
  const double least = totals[most - 1];
  std::erase_if(bars, [&](const Bar& bar) { return total_of(bar) < least; });
  bars.resize(most);
}

BarChart chart_of(const std::vector<Bar>& all) {
  std::vector<Bar> bars = all;
  keep_longest(bars, most_bars);
  return {.title = bars.size() == all.size() ? "Time of each restart"
                                             : fmt::format("Time of the {} longest of {} restarts", bars.size(), all.size()),
          .description = fmt::format("One bar per restart, stacked from {}.", fmt::join(parts(), ", ")),
          .axis = {.name = "time without a new step", .unit = Unit::seconds},
          .parts = parts(),
          .bars = bars};
}

TextTable table_of(const std::vector<LaunchOfPage>& launches) {
  std::vector<std::string> columns{"time",           "step",       "event", "layout",     "lost steps",
                                   "recovery",       "detect",     "end",   "choose",     "start",
                                   "load, in start", "first step", "host",  "state from", "reason"};
  if (launches.size() > 1) columns.insert(columns.begin(), "run");
  TextTable table(columns);
  for (const LaunchOfPage& launch : launches)
    for (const LaunchEvent& event : launch.events) {
      std::vector<std::string> cells{event.t > 0 ? human_seconds(event.t) : "0 s", std::to_string(event.step), event.name(),
                                     event.change(), event.is_interruption() ? std::to_string(event.lost_steps) : "-"};
      for (const double seconds : {event.seconds_to_step(), event.detect_s, event.end_s, event.choose_s, event.start_s,
                                   event.load_s, event.first_step_s - event.start_s})
        cells.push_back(quantity(seconds, Unit::seconds));
      for (const std::string& text : {event.host, event.source == "none" ? std::string() : event.source, event.why})
        cells.push_back(text.empty() ? "-" : text);
      if (launches.size() > 1) cells.insert(cells.begin(), launch.run->label);
      table.add(std::move(cells));
    }
  return table;
}

// The number of restarts, how long they took, the part that took longest, and the meaning of the parts.
std::string finding_of(const std::vector<LaunchOfPage>& launches, const std::vector<Bar>& bars) {
  std::vector<LaunchEvent> all;
  double standstill = 0, seconds = 0;
  for (const LaunchOfPage& launch : launches) {
    all.insert(all.end(), launch.events.begin(), launch.events.end());
    standstill += standstill_of(launch.events);
    seconds += launch.events.back().t;
  }
  std::string words = "Restarts: " + restarts_in_words(all) + ".";
  if (const std::int64_t lost = lost_steps_of(all); lost > 0)
    words += fmt::format(" {} step{} done again.", lost, lost == 1 ? " was" : "s were");
  std::vector<double> of_parts(parts().size());
  for (const Bar& bar : bars)
    for (std::size_t part = 0; part < of_parts.size(); ++part) of_parts[part] += bar.parts[part];
  const auto longest = std::ranges::max_element(of_parts);
  if (standstill > 0 && *longest > 0)
    words += fmt::format(" From the verdicts to the next new steps, {} of {} passed ({}). The longest part is \"{}\": {}.",
                         human_seconds(standstill), human_seconds(seconds), quantity(standstill / seconds, Unit::percent, 2),
                         parts()[static_cast<std::size_t>(longest - of_parts.begin())], human_seconds(*longest));
  return words +
         " Detect: no progress before the verdict. End: until the launcher had ended. Choose: layout, waits and quarantine. "
         "Start: until the ranks were ready. First step: until it was done.";
}

}  // namespace

std::optional<Figure> events(const RecordSet& records) {
  std::vector<LaunchOfPage> launches;
  for (const RecordedRun& run : records.runs) {
    std::vector<LaunchEvent> of_run = launch_events_of(run);
    if (std::ranges::any_of(of_run, &LaunchEvent::is_interruption)) launches.push_back({&run, std::move(of_run)});
  }
  if (launches.empty()) return {};
  const std::vector<Bar> bars = bars_of(launches);
  Figure figure{.finding = finding_of(launches, bars), .numbers = table_of(launches), .numbers_first = true};
  if (std::ranges::any_of(bars, [](const Bar& bar) { return total_of(bar) > 0; }))
    figure.charts.push_back(drawing_of(chart_of(bars)));
  return figure;
}

}  // namespace chorale::report
