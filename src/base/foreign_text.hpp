// Text and files that come from outside, in errors: names, tokens and reasons may have any length, and a path may lead to a
// FIFO.
#pragma once
#include <exception>
#include <filesystem>
#include <string>
#include <string_view>

namespace chorale {

std::string shortened(std::string_view text, int columns = 200);  // the first columns and "…"

// What an exception says, shortened, and without the JSON library's "[json.exception.parse_error.101] ".
std::string reason_of(const std::exception& error);

// Why this path cannot be opened as a file, or "". Ask before open(), which would wait for the writer of a FIFO.
std::string why_no_file(const std::filesystem::path& path);

}  // namespace chorale
