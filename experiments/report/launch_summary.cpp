#include "experiments/report/launch_summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "experiments/common/advice.hpp"
#include "experiments/common/scale.hpp"
#include "experiments/report/heading.hpp"
#include "experiments/report/launch_events.hpp"
#include "src/base/screen.hpp"
#include "src/base/text.hpp"
#include "src/base/text_table.hpp"

namespace chorale::report {
namespace fs = std::filesystem;
namespace {

std::string text_of(const std::vector<LaunchEvent>& events, std::size_t shown, std::size_t columns) {
  TextTable table({"time", "step", "event", "layout", "lost steps", "recovery"});
  for (auto event = events.end() - static_cast<std::ptrdiff_t>(shown); event != events.end(); ++event)
    table.add({event->t > 0 ? human_seconds(event->t) : "0 s", std::to_string(event->step), event->name(), event->change(),
               event->is_interruption() ? std::to_string(event->lost_steps) : "-",
               quantity(event->seconds_to_step(), Unit::seconds)});
  const std::size_t left_out = events.size() - shown;
  return "\n" + table.print("text", columns) +
         (left_out > 0 ? fmt::format("… and {} earlier event{}\n", left_out, left_out == 1 ? "" : "s") : "");
}

}  // namespace

std::string layouts_in_words(const RecordedRun& run) {
  constexpr std::size_t most = 4;
  std::vector<LayoutPeriod> periods = layout_periods_of(launch_events_of(run));
  std::string words = fmt::format("{} on {} rank{}", run.layout, run.ranks(), run.ranks() == 1 ? "" : "s");
  if (periods.size() > most) {
    words += fmt::format(", {} changes", periods.size() - 1);
    periods.erase(periods.begin() + 1, periods.end() - 1);
  }
  for (std::size_t i = 1; i < periods.size(); ++i)
    words += fmt::format(", {} after step {}", periods[i].layout, periods[i].after_step);
  return words;
}

std::string restarts_of(const RecordedRun& run, std::size_t columns) {
  const std::vector<LaunchEvent> events = launch_events_of(run);
  if (std::ranges::none_of(events, &LaunchEvent::is_interruption)) return "";
  std::string words = restarts_in_words(events);
  if (const std::int64_t lost = lost_steps_of(events); lost > 0)
    words += fmt::format("; {} step{} done again", lost, lost == 1 ? " was" : "s were");
  if (const double seconds = standstill_of(events); seconds > 0)
    words += fmt::format("; {} of {} passed without a new step", human_seconds(seconds), human_seconds(events.back().t));
  return fact("restarts", words, columns);
}

std::string newest_events(const RecordedRun& run, std::size_t most, std::size_t columns) {
  const std::vector<LaunchEvent> events = launch_events_of(run);
  if (std::ranges::none_of(events, &LaunchEvent::is_interruption)) return "";
  std::string text;
  const auto lines = [&] { return static_cast<std::size_t>(std::ranges::count(text, '\n')); };
  for (std::size_t shown = std::min(events.size(), most); shown > 0; --shown)  // a wide table is printed in two parts
    if (text = text_of(events, shown, columns); lines() <= most) return text;
  return "";
}

std::string reports_of_starts(const std::string& file, std::size_t columns) {
  const fs::path folder = fs::path(file).parent_path();
  std::error_code trouble;  // a folder that cannot be read has no starts
  for (const fs::directory_entry& entry : fs::directory_iterator(folder.empty() ? "." : folder, trouble))
    if (entry.path().filename().string().find("-train-") != std::string::npos)
      return paragraph("each start: ", fmt::format("{} report {}", program(), (folder / "*-train-*").string()), columns,
                       " \\");
  return "";
}

}  // namespace chorale::report
