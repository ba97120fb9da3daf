#include "src/base/error.hpp"

#include <new>

#include "src/base/host.hpp"
#include "src/base/text.hpp"

namespace chorale {
namespace {

// Sources are compiled with their path from the root, so the file name is short and the same on every machine. If sources
// are compiled in bundles, the file name starts with "./".
std::string place(const std::source_location& where) {
  const std::string_view file = where.file_name();
  return fmt::format("{}:{}", file.substr(file.starts_with("./") ? 2 : 0), where.line());
}

std::string indented(const std::string& what, const std::vector<std::string>& lines) {
  std::string text = escape_control(what);
  for (const std::string& line : lines)
    if (!line.empty()) text += "\n  " + escape_control(line);
  return text;
}

// Describes a failed allocation. The message of std::bad_alloc is only the exception's name, so this function adds the
// limits of the process.
std::string what_lacks_memory() {
  std::string numbers;
  for (const Limit& limit : limits())
    if (limit.of_memory) numbers += fmt::format("{}{}: {}", numbers.empty() ? "" : ", ", limit.name, limit.value);
  return indented("there is too little memory", {numbers, more_memory});
}

}  // namespace

Error::Error(Exit exit, std::string what, std::string numbers, std::string fix, std::source_location where)
    : Error(exit, what, {numbers, fix}, where) {}

Error::Error(Exit exit, const std::string& what, const std::vector<std::string>& lines, std::source_location where)
    : std::runtime_error(indented(what, lines)), exit_(exit), where_(where) {}

void usage_error(std::string what, std::string numbers, std::string fix, std::source_location where) {
  throw Error(Exit::usage, std::move(what), std::move(numbers), std::move(fix), where);
}

void misuse(std::string sentence, std::source_location where) {
  throw Error(Exit::runtime, std::move(sentence), fmt::format("required by {} at {}", where.function_name(), place(where)),
              "this is a bug in the calling code, not in your input", where);
}

std::string describe(const std::exception& error, int rank, int size) {
  const bool no_memory = dynamic_cast<const std::bad_alloc*>(&error);
  std::string text = std::string("error: ") + (no_memory ? what_lacks_memory() : error.what());
  const auto* ours = dynamic_cast<const Error*>(&error);
  if (ours && ours->exit() == Exit::usage) return text + "\n";
  text += fmt::format("\n  rank {} of {} on {}", rank, size, host_name());
  if (ours) text += ", at " + place(ours->where());
  return text + "\n";
}

int exit_code_of(const std::exception& error) {
  const auto* ours = dynamic_cast<const Error*>(&error);
  return static_cast<int>(ours ? ours->exit() : Exit::runtime);
}

}  // namespace chorale
