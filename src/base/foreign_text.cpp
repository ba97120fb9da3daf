#include "src/base/foreign_text.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "src/base/text.hpp"

namespace chorale {

std::string shortened(std::string_view text, int columns) {
  const std::string first = first_columns(text, columns);
  return first.size() < text.size() ? first + "…" : first;
}

std::string reason_of(const std::exception& error) {
  std::string_view text = error.what();
  if (const std::size_t end = text.find("] "); text.starts_with("[json.exception.") && end != std::string_view::npos)
    text.remove_prefix(end + 2);
  return shortened(text);
}

std::string why_no_file(const std::filesystem::path& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return std::strerror(errno);
  return S_ISREG(status.st_mode) ? "" : "not a regular file";
}

}  // namespace chorale
