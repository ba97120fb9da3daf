#include "experiments/plan/document.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "src/base/text.hpp"

namespace chorale::plan {
namespace {

std::size_t width(const std::string& text) {  // in columns
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

// A line that is too long is broken at spaces, and its other lines are indented. `columns` 0: no limit.
std::string wrapped(const std::string& line, std::size_t columns) {
  if (columns == 0 || width(line) <= columns) return line;
  const std::size_t margin = line.find_first_not_of(' ');
  std::string out, now(margin, ' ');
  for (const std::string& word : split(line.substr(margin), ' ')) {
    const bool begins = now.find_first_not_of(' ') == std::string::npos;
    if (!begins && width(now) + 1 + width(word) > columns) {
      out += now + "\n", now = std::string(margin + 2, ' ') + word;
      continue;
    }
    now += (begins ? "" : " ") + word;
  }
  return out + now;
}

}  // namespace

std::string on_screen(const std::string& words) {
  std::vector<std::string> lines = split(words, '\n');
  for (std::string& line : lines) line = wrapped(line, screen_columns());
  return join(lines, "\n");
}

void Document::words(const std::string& words) { text_ += on_screen(words); }

void Document::table(const std::string& name, const TextTable& table) {
  if (table.rows() == 0) return;
  if (format_ == "text") text_ += table.print("text", screen_columns());
  tables_.emplace_back(name, table);
}

std::string Document::print() const {
  if (format_ == "text") return text_;
  if (format_ == "json") {
    nlohmann::ordered_json object = facts_;
    for (const auto& [name, table] : tables_) object[name] = nlohmann::ordered_json::parse(table.print("json"));
    return object.dump(1) + "\n";
  }
  std::string out;
  for (const auto& [name, table] : tables_) {
    if (format_ == "md" && tables_.size() > 1) out += fmt::format("{}## {}\n\n", out.empty() ? "" : "\n", name);
    if (format_ == "csv" && !out.empty()) out += fmt::format("\n# {}\n", name);
    out += table.print(format_);
  }
  return out;
}

}  // namespace chorale::plan
