// The table of `plan --layout all`. Text shows the first rows and says how many are left out. The other formats have all
// rows, unless --rows is given; csv and json have plain values.
#include <fmt/format.h>

#include <algorithm>

#include "experiments/plan/candidates.hpp"
#include "experiments/plan/document.hpp"
#include "experiments/plan/wording.hpp"
#include "src/base/text.hpp"

namespace chorale::plan {
namespace {

std::vector<std::string> columns_of(const Wording& as) {
  if (as.plain())
    return {"layout", "memory_bytes", "state_bytes", "sent_bytes", "bubble", "step_s", "fits", "no_better_than"};
  return {"layout", "memory/rank", "states/rank", "sent/step", "bubble", "time/step", "note"};
}

std::string note_on(const Candidate& c) {
  if (!c.fits) return "does not fit";
  std::vector<std::string> notes;
  if (c.share > tight_share) notes.push_back(fmt::format("{:.0f} % of the limit", 100 * c.share));
  if (!c.rival.empty()) notes.push_back("no better than " + c.rival);
  return join(notes, ", ");
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

// The shortest predicted time of a layout that fits; −1 if no layout fits.
double fastest_of(const Choices& choices) {
  double least = -1;
  for (const Candidate& c : choices.rows)
    if (c.fits && c.seconds >= 0 && (least < 0 || c.seconds < least)) least = c.seconds;
  return least;
}

std::string about_time(const Choices& choices, const Accuracy& accuracy) {
  if (std::ranges::all_of(choices.rows, [](const Candidate& c) { return c.seconds < 0; }))
    return fmt::format("not predicted: {} (docs/machine_file.md)", choices.rows.front().why_not);
  const std::string by = "predicted by " + accuracy.origin;
  if (accuracy.error == 0) return by;
  return fmt::format("{}; ~: within {:.0f} % of the fastest that fits, the error of predictions, so it may be as fast", by,
                     100 * accuracy.error);
}

}  // namespace

std::string table_of(const Choices& choices, const std::string& format, std::int64_t most_rows, const std::string& assumed,
                     const Accuracy& accuracy) {
  const Wording as(format);
  const double fastest = fastest_of(choices);
  const auto tied = [&](const Candidate& c) {
    return c.fits && c.seconds > fastest && c.seconds <= (1 + accuracy.error) * fastest;
  };
  TextTable table(columns_of(as));
  const std::size_t shown =
      most_rows > 0 ? std::min(choices.rows.size(), static_cast<std::size_t>(most_rows)) : choices.rows.size();
  for (std::size_t i = 0; i < shown; ++i) {
    const Candidate& c = choices.rows[i];
    std::vector<std::string> row{to_string(c.layout), as.bytes(c.memory_bytes), as.bytes(c.state_bytes),
                                 as.bytes(c.sent_bytes), as.share(c.bubble)};
    if (as.plain())
      row.insert(row.end(), {as.seconds(c.seconds), c.fits ? "yes" : "no", c.rival});
    else
      row.insert(row.end(), {c.seconds < 0 ? "?" : (tied(c) ? "~ " : "") + human_seconds(c.seconds), note_on(c)});
    table.add(row);
  }
  if (format != "text") return table.print(format);
  Document out(format);
  out.table("layouts", table);
  out.words(fmt::format(
      "\nmemory: peak of the rank that needs most; states: the most that a rank holds between steps\n"
      "sent: by the rank that sends most\n"
      "{}time: {}\n"
      "no better than: the other layout needs no more memory or time, sends no more bytes and has no "
      "larger bubble\n{}",
      assumed.empty() ? "" : "assumed: " + assumed + "\n", about_time(choices, accuracy), left_out(choices, shown)));
  return out.print();
}

}  // namespace chorale::plan
