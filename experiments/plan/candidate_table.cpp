// The table of `plan --layout all`. Text shows the first rows and says what it leaves out. The other formats have all rows;
// csv and json have plain numbers.
#include <fmt/format.h>

#include <algorithm>

#include "experiments/plan/candidates.hpp"
#include "src/base/text.hpp"
#include "src/base/text_table.hpp"

namespace chorale::plan {
namespace {

std::string for_programs(const Choices& choices, const std::string& format) {
  TextTable table({"layout", "memory_bytes", "state_bytes", "sent_bytes", "bubble", "step_s", "fits", "no_better_than"});
  for (const Candidate& c : choices.rows)
    table.add({to_string(c.layout), std::to_string(c.memory_bytes), std::to_string(c.state_bytes),
               std::to_string(c.sent_bytes), fmt::format("{}", c.bubble),
               c.seconds < 0 ? "" : fmt::format("{:.6g}", c.seconds), c.fits ? "yes" : "no", c.rival});
  return table.print(format);
}

std::string note_on(const Candidate& c) {
  if (!c.fits) return "does not fit";
  return c.rival.empty() ? "" : "no better than " + c.rival;
}

std::string left_out(const Choices& choices, std::size_t shown) {
  const auto hidden = choices.rows.begin() + static_cast<std::ptrdiff_t>(shown);
  const auto too_large = std::count_if(hidden, choices.rows.end(), [](const Candidate& c) { return !c.fits; });
  const auto beaten =
      std::count_if(hidden, choices.rows.end(), [](const Candidate& c) { return c.fits && !c.rival.empty(); });
  const auto good = choices.rows.end() - hidden - too_large - beaten;
  std::vector<std::string> kinds;
  if (good > 0) kinds.push_back(fmt::format("{} with larger bubbles or more bytes sent", good));
  if (beaten > 0) kinds.push_back(fmt::format("{} no better than another", beaten));
  if (too_large > 0) kinds.push_back(fmt::format("{} that would not fit", too_large));
  std::string text;
  if (!kinds.empty())
    text += fmt::format("left out: {}; --rows 0 shows them; flags such as --tp 2, --pp 1, --zero 1 narrow the list\n",
                        join(kinds, ", "));
  if (choices.schedules_left_out > 0)
    text += fmt::format(
        "left out: {} whose pipeline schedule is no better than another; flags such as --schedule gpipe show them\n",
        choices.schedules_left_out);
  return text;
}

}  // namespace

std::string decimal_bytes(std::int64_t bytes) {
  constexpr const char* units[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1000 && unit + 1 < std::size(units)) value /= 1000, ++unit;
  return bytes < 0 ? "?" : fmt::format("{:.{}f} {}", value, unit > 0 ? 2 : 0, units[unit]);
}

std::string table_of(const Choices& choices, const std::string& format, std::int64_t most_rows, const std::string& assumed) {
  if (format == "json" || format == "csv") return for_programs(choices, format);
  TextTable table({"layout", "memory/rank", "states/rank", "sent/step", "bubble", "time/step", "note"});
  std::size_t shown = choices.rows.size();
  if (format == "text" && most_rows > 0) shown = std::min(shown, static_cast<std::size_t>(most_rows));
  for (std::size_t i = 0; i < shown; ++i) {
    const Candidate& c = choices.rows[i];
    table.add({to_string(c.layout), decimal_bytes(c.memory_bytes), decimal_bytes(c.state_bytes), decimal_bytes(c.sent_bytes),
               fmt::format("{:.1f} %", 100 * c.bubble), c.seconds < 0 ? "?" : human_seconds(c.seconds), note_on(c)});
  }
  if (format != "text") return table.print(format);
  const bool any = std::ranges::any_of(choices.rows, [](const Candidate& c) { return c.seconds >= 0; });
  const char* const about_time = any ? "predicted by the machine file"
                                     : "not predicted, because the machine file lacks prices: chorale tune --calibrate";
  return table.print(format) +
         fmt::format(
             "\nmemory: peak of the rank that needs most; states: the most that a rank holds between steps\n"
             "sent: by the rank that sends most{}\n"
             "time: {}\n"
             "no better than: the other layout needs no more memory or time, sends no more bytes and has no larger "
             "bubble\n{}",
             assumed, about_time, left_out(choices, shown));
}

}  // namespace chorale::plan
