#include "experiments/common/shared_files.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "src/base/error.hpp"
#include "src/base/text.hpp"

namespace chorale {
namespace fs = std::filesystem;

fs::path shared_file(const fs::path& name) {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error).parent_path().parent_path();
  for (const fs::path& folder : {program / "experiments", program / "share" / "chorale"})
    if (fs::exists(folder / name, error)) return folder / name;
  return name;
}

std::vector<std::string> shared_names(const std::string& folder) {
  std::error_code error;
  const fs::path place = shared_file(folder);
  std::vector<std::string> names;
  if (fs::is_directory(place, error))
    for (const auto& entry : fs::directory_iterator(place)) names.push_back(entry.path().stem().string());
  std::ranges::sort(names);
  return names;
}

fs::path shared_or_own(const std::string& word, const std::string& folder, const std::string& kind) {
  std::error_code error;
  if (fs::is_regular_file(word, error) || word.find('/') != std::string::npos || word.ends_with(".toml")) return word;
  if (const fs::path file = shared_file(folder) / (word + ".toml"); fs::exists(file, error)) return file;
  const std::vector<std::string> known = shared_names(folder);
  usage_error(fmt::format("there is no such {}", kind), fmt::format("{} {}; known: {}", kind, word, join(known, ", ")),
              did_you_mean(word, known, fmt::format("name one of these, or a {} file", kind)));
}

}  // namespace chorale
