// Makes text and paths from outside the program safe to use in error messages. Names, tokens and reasons can have any
// length, and a path can point to a FIFO.
#pragma once
#include <exception>
#include <filesystem>
#include <string>
#include <string_view>

namespace chorale {

std::string shortened(std::string_view text, int columns = 200);  // a text wider than `columns` is truncated and ends with
                                                                  // "…"

// Returns the message of an exception, shortened, and without prefixes of the JSON library such as
// "[json.exception.parse_error.101] ".
std::string reason_of(const std::exception& error);

// Returns why this path cannot be opened as a file, or "" if it can. Must be called before open(), which would block on a
// FIFO that has no writer.
std::string why_no_file(const std::filesystem::path& path);

}  // namespace chorale
