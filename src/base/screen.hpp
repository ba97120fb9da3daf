// Fits paragraphs to the width of the terminal. text_table.hpp does the same for tables.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace chorale {

// The width to which text on stdout should fit: COLUMNS if it is exported, else the width of the terminal. 0 if stdout is a
// pipe or a file: its reader may search the lines, so they stay whole.
std::size_t screen_columns();

std::size_t columns_of(std::string_view text);  // its width on the screen, counted in code points

// Breaks a text between words into lines that fit `columns`; 0: no limit. The first line begins with `head`, and the others
// are indented to the same column. There is no break before a "%". A word that is longer than a line is broken after a "|".
// Each line but the last ends with `continued`.
std::string paragraph(std::string_view head, std::string_view text, std::size_t columns, std::string_view continued = "");

// Breaks lines that are wider than the screen at spaces. If stdout is a pipe or a file, lines stay whole.
std::string on_screen(const std::string& words);

// Formats the notes above a table, which are lines that begin with "# ". A note wider than `columns` continues on lines that
// begin with "#   ".
std::string notes_within(std::string_view notes, std::size_t columns);

}  // namespace chorale
