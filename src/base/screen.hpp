// Fits paragraphs to the width of the terminal. text_table.hpp fits tables.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace chorale {

// Returns the width to which text on stdout should fit: COLUMNS if it is exported, otherwise the width of the terminal.
// Returns 0 if stdout is a pipe or a file. Lines in a pipe or a file are not broken, because a reader might search them.
std::size_t screen_columns();

std::size_t columns_of(std::string_view text);  // width of the text on the screen, counted in code points

// Breaks a text between words into lines that fit `columns`, or does not break it if `columns` is 0. The first line begins
// with `head`, and all further lines are indented to the same column. There is no break before a "%". A word that is longer
// than a line is broken after a "|". Each line except the last ends with `continued`.
std::string paragraph(std::string_view head, std::string_view text, std::size_t columns, std::string_view continued = "");

// Breaks lines that are wider than the screen at spaces. If stdout is a pipe or a file, lines are not broken.
std::string on_screen(const std::string& words);

// Formats the notes above a table. Notes are lines that begin with "# ". A note wider than `columns` continues on lines that
// begin with "#   ".
std::string notes_within(std::string_view notes, std::size_t columns);

}  // namespace chorale
