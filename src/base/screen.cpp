#include "src/base/screen.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "src/base/text.hpp"

namespace chorale {
namespace {

// Returns the length of the longest prefix of `word` that ends with a "|" and fits `columns`, or 0 if there is no such
// prefix.
std::size_t piece_of(const std::string& word, std::size_t columns) {
  const std::size_t bar = first_columns(word, static_cast<int>(columns)).rfind('|');
  return bar == std::string::npos ? 0 : bar + 1;
}

}  // namespace

std::size_t columns_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::size_t screen_columns() {
  const char* const told = std::getenv("COLUMNS");
  if (const long columns = told ? std::strtol(told, nullptr, 10) : 0; columns > 0) return static_cast<std::size_t>(columns);
  winsize size{};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

std::string paragraph(std::string_view head, std::string_view text, std::size_t columns, std::string_view continued) {
  const std::string indent(columns_of(head), ' ');
  std::string out, line(head);
  bool begins = true;  // true at the start of a line
  const auto next_line = [&] {
    out += line + std::string(continued) + "\n";
    line = indent;
    begins = true;
  };
  const auto fits = [&](const std::string& more) {
    return columns == 0 || columns_of(line) + !begins + columns_of(more) + columns_of(continued) <= columns;
  };
  const auto put = [&](const std::string& word) {
    line += (begins ? "" : " ") + word;
    begins = false;
  };
  std::vector<std::string> words;
  for (const std::string& word : split(escape_control(text), ' '))
    if (word.starts_with('%') && !words.empty())
      words.back() += " " + word;  // keeps a "%" with its number
    else
      words.push_back(word);
  for (std::string& word : words) {
    if (!fits(word) && !begins) next_line();
    while (!fits(word)) {
      const std::size_t piece = columns > indent.size() ? piece_of(word, columns - indent.size()) : 0;
      if (piece == 0 || piece == word.size()) break;
      put(word.substr(0, piece));
      next_line();
      word.erase(0, piece);
    }
    put(word);
  }
  return out + line + "\n";
}

std::string on_screen(const std::string& words) {
  std::vector<std::string> lines = split(words, '\n');
  for (std::string& line : lines) {
    const std::size_t margin = line.find_first_not_of(' ');
    if (margin == std::string::npos) continue;
    line = paragraph(std::string(margin, ' '), line.substr(margin), screen_columns());
    line.pop_back();  // removes the final newline
  }
  return join(lines, "\n");
}

std::string notes_within(std::string_view notes, std::size_t columns) {
  std::string out;
  for (const std::string& note : split(notes, '\n')) {
    if (columns == 0 || columns_of(note) <= columns || !note.starts_with("# ")) {
      out += note.empty() ? "" : note + "\n";
      continue;
    }
    const std::string wrapped = paragraph("", note.substr(2), columns > 4 ? columns - 4 : 1);
    std::string head = "# ";
    for (const std::string& line : split(wrapped, '\n'))
      if (!line.empty()) {
        out += head + line + "\n";
        head = "#   ";
      }
  }
  return out;
}

}  // namespace chorale
