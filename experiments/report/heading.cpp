#include "experiments/report/heading.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include <chorale/clock.hpp>
#include "experiments/common/advice.hpp"
#include "experiments/report/disturbed.hpp"
#include "src/base/error.hpp"
#include "src/base/guard/dump.hpp"
#include "src/base/screen.hpp"
#include "src/base/text.hpp"

namespace chorale::report {
namespace {

// The reason that the run itself recorded.
std::string recorded_reason(const Reader& record) {
  for (const Variable& variable : record.variables("/"))
    if (variable.name == "failure" && !variable.cells.empty()) return variable.cells[0];
  return "";
}

// The reason why a launch gave up, and what ended its last start.
std::string reason_of_launch(const Reader& record) {
  const std::vector<std::string> groups = record.groups();
  if (std::ranges::find(groups, "/events") == groups.end()) return "";
  const RecordGroup events(record.variables("/events"), by_rule);
  const std::vector<std::string> kinds = events.words("kind"), why = events.words("why");
  if (kinds.empty() || kinds.size() != why.size() || kinds.back() != "gave_up") return "";
  return "the launch gave up: " + why.back() + (why.size() > 1 ? "\n" + why[why.size() - 2] : "");
}

// Returns the reason that the guards (the processes that watch the ranks) recorded. Rank 0 writes the record. If rank 0 was
// killed, only the guards know the reason.
std::string seen_reason(const std::string& file) try {
  return read_dumps(std::filesystem::path(file).parent_path()).lost;
} catch (const Error&) {
  return "";
}

std::string last_sign_of_life(const Reader& record) {
  const std::string heartbeat = record.attribute("heartbeat");
  if (heartbeat.empty()) return "";
  const double seconds = SystemClock().wall_seconds() - std::strtod(heartbeat.c_str(), nullptr);
  constexpr double surely_dead = 600;  // a record is written every ten seconds, unless one step takes longer
  return fmt::format("written {} ago{}", human_seconds(std::max(0.0, seconds)),
                     seconds > surely_dead ? ": the run was probably killed" : "");
}

}  // namespace

std::string trouble_of(const std::string& file, const Reader& record, std::size_t columns) {
  const std::string status = record.attribute("status");
  if (status.empty() || status == "ok") return "";
  std::string reason = recorded_reason(record);
  if (reason.empty()) reason = reason_of_launch(record);
  if (reason.empty() && status != "stopped") reason = seen_reason(file);
  const bool was_stopped = reason.starts_with(stopped_mark);
  for (const std::string_view said : {"error: ", stopped_mark})  // the heading already contains these words
    if (reason.starts_with(said)) reason = reason.substr(said.size());
  const bool known = !reason.empty();
  if (!known) reason = status == "stopped" ? "by a signal" : status == "running" ? last_sign_of_life(record) : "see its log";
  constexpr std::size_t most_lines = 4;
  std::string out;
  std::size_t lines = 0;
  for (const std::string& line : split(reason, '\n')) {
    if (trim(line).empty() || lines++ == most_lines) continue;
    const std::string head = !known || status != "running" ? status : was_stopped ? "stopped" : "failed";
    out += out.empty() ? paragraph(head + ": ", trim(line), columns) : paragraph("  ", trim(line), columns);
  }
  return out;
}

std::string fact(const std::string& name, const std::string& text, std::size_t columns, std::size_t most) {
  const std::string all = paragraph(fmt::format("  {:<11} ", name), text, columns);
  std::string out;
  for (const std::string& line : split(all.substr(0, all.size() - 1), '\n')) {
    if (most-- == 0) return out.substr(0, out.size() - 1) + " …\n";
    out += line + "\n";
  }
  return out;
}

std::string facts_of(const Reader& record, std::size_t columns) {
  constexpr std::pair<const char*, const char*> facts[] = {
      {"command", "cmdline"}, {"started", "launchdate"}, {"machine", "machine"}};
  std::string out;
  for (const auto& [name, attribute] : facts)
    if (const std::string text = record.attribute(attribute); !text.empty()) out += fact(name, text, columns);
  return out;
}

std::string disturbance_in(const RecordSet& records, std::size_t columns) {
  const std::string disturbance = disturbance_of(records);
  return disturbance.empty() ? "" : fact("disturbed", disturbance, columns);
}

std::string footer_of(const std::string& file, std::size_t columns) {
  const auto line = [&](const char* head, const char* flag) {
    return paragraph(head, fmt::format("{} report {} {}", program(), file, flag), columns, " \\");
  };
  return line("all tables: ", "--all") + line("figures:    ", "--html");
}

}  // namespace chorale::report
