#include "experiments/plan/document.hpp"

#include <fmt/format.h>

#include "src/base/screen.hpp"

namespace chorale::plan {

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
