#include "src/base/text_table.hpp"

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "src/base/error.hpp"
#include "src/base/text.hpp"

namespace chorale {
namespace {

// The width in columns on the screen. UTF-8 continuation bytes take no column.
std::size_t width(const std::string& cell) {
  return static_cast<std::size_t>(
      std::count_if(cell.begin(), cell.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

bool is_number(const std::string& cell) {
  if (cell.empty() || cell.find_first_not_of("0123456789+-.eE") != std::string::npos) return false;
  char* end = nullptr;
  std::strtod(cell.c_str(), &end);
  return *end == '\0';
}

// Numbers, and approximate ones such as "~ 0.98", are right-aligned.
bool lines_up(const std::string& cell) { return is_number(cell.starts_with("~ ") ? cell.substr(2) : cell); }

std::string padded(const std::string& cell, std::size_t columns) {
  const std::string space(columns - width(cell), ' ');
  return lines_up(cell) ? space + cell : cell + space;  // right-aligned numbers line up at their last digit
}

}  // namespace

void TextTable::add(std::vector<std::string> cells) {
  require(cells.size() == columns_.size(), "a row of {} cells does not fit {} columns", cells.size(), columns_.size());
  rows_.push_back(std::move(cells));
}

const std::vector<std::string>& TextTable::formats() {
  static const std::vector<std::string> names{"text", "csv", "json", "md"};
  return names;
}

std::string TextTable::print(const std::string& format) const {
  if (format == "csv") return csv();
  if (format == "json") return json();
  if (format == "md") return md();
  require(format == "text", "unknown table format \"{}\"", format);
  return text();
}

std::string TextTable::text() const {
  std::vector<std::size_t> widths(columns_.size());
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    widths[c] = width(escape_control(columns_[c]));
    for (const auto& row : rows_) widths[c] = std::max(widths[c], width(escape_control(row[c])));
  }
  std::string out;
  const auto print_row = [&](const std::vector<std::string>& row) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c) line += (c ? "  " : "") + padded(escape_control(row[c]), widths[c]);
    out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  };
  print_row(columns_);
  for (const auto& row : rows_) print_row(row);
  return out;
}

std::string TextTable::csv() const {
  std::string out;
  const auto print_row = [&](const std::vector<std::string>& row) {
    for (std::size_t c = 0; c < row.size(); ++c) {
      std::string cell = row[c];
      if (cell.find_first_of(",\"\r\n") != std::string::npos) {  // RFC 4180
        for (std::size_t at = 0; (at = cell.find('"', at)) != std::string::npos; at += 2) cell.insert(at, 1, '"');
        cell = '"' + cell + '"';
      }
      out += (c ? "," : "") + cell;
    }
    out += "\n";
  };
  print_row(columns_);
  for (const auto& row : rows_) print_row(row);
  return out;
}

std::string TextTable::json() const {
  auto array = nlohmann::ordered_json::array();
  for (const auto& row : rows_) {
    nlohmann::ordered_json object = nlohmann::ordered_json::object();
    for (std::size_t c = 0; c < row.size(); ++c) {
      const auto number =
          is_number(row[c]) ? nlohmann::ordered_json::parse(row[c], nullptr, false) : nlohmann::ordered_json(row[c]);
      object[columns_[c]] = number.is_discarded() ? nlohmann::ordered_json(row[c]) : number;  // "007" is not a JSON number
    }
    array.push_back(std::move(object));
  }
  return array.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::string TextTable::md() const {
  std::string out;
  const auto print_row = [&](const std::vector<std::string>& row) {
    out += "|";
    for (std::string cell : row) {
      for (std::size_t at = 0; (at = cell.find('|', at)) != std::string::npos; at += 2) cell.insert(at, 1, '\\');
      out += " " + replace_all(cell, '\n', ' ') + " |";
    }
    out += "\n";
  };
  print_row(columns_);
  print_row(std::vector<std::string>(columns_.size(), "---"));
  for (const auto& row : rows_) print_row(row);
  return out;
}

std::string TextTable::html() const {
  std::string out = "<table>\n<thead><tr>";
  for (const std::string& column : columns_) out += "<th scope=\"col\">" + escape_xml(column) + "</th>";
  out += "</tr></thead>\n<tbody>\n";
  for (const auto& row : rows_) {
    out += "<tr>";
    for (const std::string& cell : row)
      out += (lines_up(cell) ? "<td class=\"number\">" : "<td>") + escape_xml(cell) + "</td>";
    out += "</tr>\n";
  }
  return out + "</tbody>\n</table>\n";
}

}  // namespace chorale
