#include "src/base/text_table.hpp"

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "src/base/error.hpp"
#include "src/base/text.hpp"

namespace chorale {
namespace {

bool is_number(const std::string& cell) {
  if (cell.empty() || cell.find_first_not_of("0123456789+-.eE") != std::string::npos) return false;
  char* end = nullptr;
  std::strtod(cell.c_str(), &end);
  return *end == '\0';
}

// Numbers and uncertain numbers such as "~ 0.98" and "? 0.98" are right-aligned.
bool lines_up(const std::string& cell) {
  return is_number(cell.starts_with("~ ") || cell.starts_with("? ") ? cell.substr(2) : cell);
}

bool is_absent(const std::string& cell) { return cell.empty() || cell == "-"; }

std::string padded(const std::string& cell, std::size_t columns, bool right) {
  const std::string space(columns - columns_of(cell), ' ');
  return right ? space + cell : cell + space;
}

// The format of a column. The heading is above the numbers, and the last digits of the numbers are aligned.
struct Form {
  std::size_t width = 0;
  bool is_numeric = false;  // contains only numbers and empty cells

  void take(const std::string& cell) { width = std::max(width, columns_of(cell)); }
  std::string print(const std::string& cell, bool is_heading) const {
    return padded(cell, width, is_heading || is_absent(cell) ? is_numeric : lines_up(cell));
  }
};

// Returns how many leading columns are needed to tell all rows apart. If all columns were needed, returns 1.
std::size_t columns_that_name_rows(const std::vector<std::vector<std::string>>& rows, std::size_t columns) {
  for (std::size_t names = 1; names < columns; ++names) {
    std::set<std::vector<std::string>> seen;
    for (const auto& row : rows) seen.emplace(row.begin(), row.begin() + static_cast<std::ptrdiff_t>(names));
    if (seen.size() == rows.size()) return names;
  }
  return 1;
}

constexpr std::size_t least_words = 32;  // minimum width of a text cell that is broken between words

std::size_t width_of(const std::vector<Form>& forms, const std::vector<std::size_t>& block) {
  std::size_t width = 0;
  for (const std::size_t c : block) width += (c == block.front() ? 0 : 2) + forms[c].width;
  return width;
}

// Splits the columns into blocks, each with as many columns as fit side by side. Every block begins with the columns that
// identify the rows, or with only the first column if the identifying columns leave no space. A text cell at the end of a
// block can be too wide; print_row() breaks it.
std::vector<std::vector<std::size_t>> blocks_that_fit(const std::vector<Form>& forms, std::size_t names,
                                                      std::size_t columns) {
  std::vector<std::vector<std::size_t>> blocks(1);
  for (std::size_t c = 0; c < forms.size(); ++c) {
    const auto has_room = [&](std::size_t width) {
      return columns == 0 || width_of(forms, blocks.back()) + 2 + width <= columns;
    };
    if (blocks.back().size() > 1 && !has_room(forms[c].width)) {
      blocks.emplace_back(std::min(names, c));
      std::iota(blocks.back().begin(), blocks.back().end(), std::size_t{0});
      const std::size_t needed = forms[c].is_numeric ? forms[c].width : std::min(forms[c].width, least_words);
      if (!has_room(needed)) blocks.back() = {0};
    }
    blocks.back().push_back(c);
  }
  return blocks;
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

std::string TextTable::print(const std::string& format, std::size_t columns) const {
  if (format == "csv") return csv();
  if (format == "json") return json();
  if (format == "md") return md();
  require(format == "text", "unknown table format \"{}\"", format);
  return text(columns);
}

std::string TextTable::text(std::size_t columns) const {
  std::vector<Form> forms(columns_.size());
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    forms[c].take(escape_control(columns_[c]));
    if (!units_.empty()) forms[c].take(units_[c]);
    for (const auto& row : rows_) forms[c].take(escape_control(row[c]));
    const auto has = [&](auto holds) { return std::ranges::any_of(rows_, [&](const auto& row) { return holds(row[c]); }); };
    forms[c].is_numeric = has(lines_up) && !has([](const auto& cell) { return !lines_up(cell) && !is_absent(cell); });
  }
  std::string out;
  for (const std::vector<std::size_t>& block :
       blocks_that_fit(forms, columns_that_name_rows(rows_, forms.size()), columns)) {
    if (!out.empty()) out += "\n";
    const std::size_t last = block.back();
    const bool breaks = columns > 0 && last > 0 && !forms[last].is_numeric && width_of(forms, block) > columns;
    const auto print_row = [&](const std::vector<std::string>& row, bool is_heading) {
      std::string line;
      for (const std::size_t c : block) {
        if (c > 0) line += "  ";
        if (c == last && breaks && !row[c].empty()) return void(out += paragraph(line, row[c], columns));
        line += forms[c].print(escape_control(row[c]), is_heading);
      }
      out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
    };
    print_row(columns_, true);
    if (!units_.empty()) print_row(units_, true);
    for (const auto& row : rows_) print_row(row, false);
  }
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
  std::vector<bool> has_words(columns_.size());  // in a column without text, an empty cell is an unknown number
  for (const auto& row : rows_)
    for (std::size_t c = 0; c < row.size(); ++c) has_words[c] = has_words[c] || (!row[c].empty() && !is_number(row[c]));
  for (const auto& row : rows_) {
    nlohmann::ordered_json object = nlohmann::ordered_json::object();
    for (std::size_t c = 0; c < row.size(); ++c) {
      const auto number = is_number(row[c])                 ? nlohmann::ordered_json::parse(row[c], nullptr, false)
                          : row[c].empty() && !has_words[c] ? nlohmann::ordered_json()
                                                            : nlohmann::ordered_json(row[c]);
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
  std::vector<std::string> headings = columns_;
  for (std::size_t c = 0; c < units_.size(); ++c)
    if (!units_[c].empty()) headings[c] += " " + units_[c];
  print_row(headings);
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
