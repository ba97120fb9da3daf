// Checks settings that name files and folders before anything reads the files. A setting names a file or folder if its
// option has the help placeholder FILE, DIR or PROGRAM. Commands later check everything else: whether a file must exist, and
// its required contents.
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "src/base/error.hpp"
#include "src/base/settings.hpp"
#include "src/base/text.hpp"

namespace chorale {
namespace {

bool takes_path(const Option& option) {
  for (const char* word : {"FILE", "DIR", "PROGRAM"})
    if (option.metavar.find(word) != std::string::npos) return true;
  return false;
}

// Returns why this path cannot be used, or "" if it can be used. A path that does not exist is accepted, because it can name
// a new file.
std::string flaw_of(const std::string& path) {
  struct stat status {};
  const bool found = stat(path.c_str(), &status) == 0;
  if (found && access(path.c_str(), S_ISDIR(status.st_mode) ? X_OK : R_OK) == 0) return "";
  return !found && (errno == ENOENT || errno == ENOTDIR) ? "" : std::strerror(errno);
}

}  // namespace

void refuse_unusable_paths(Options& options, const std::vector<Setting>& settings) {
  for (const Option& option : options.all()) {
    if (!takes_path(option)) continue;
    std::vector<const Setting*> given;
    for (const Setting& setting : settings)
      if (options.find(setting.key) == &option) given.push_back(&setting);
    if (given.empty()) continue;
    const Setting& setting = *given.back();  // earlier settings have no effect
    // An empty path can cancel a path from a config file.
    const bool needs_path = given.size() == 1 && setting.source == Source::command_line;
    const std::string name = option.positional ? option.metavar : "--" + option.name;
    const char separator = option.positional ? '\n' : ',';
    const bool several = option.is_list && !setting.text.empty();
    for (const std::string& path : several ? split(setting.text, separator) : std::vector{setting.text}) {
      if (path.empty() && needs_path)
        options.refuse({fmt::format("the path given to {} is empty", name),
                        fmt::format("{} = \"\" ({})", name, setting.origin), "name a path, or leave the option out",
                        fmt::format("the path given to {} is empty", name)});
      if (const std::string flaw = flaw_of(path); !flaw.empty()) {
        const std::string numbers = fmt::format("{}: {} ({})", path, flaw, setting.origin);
        options.refuse({"the path cannot be used", numbers, fmt::format("check the path given to {}", name),
                        fmt::format("{} {}", name, numbers)});
      }
    }
  }
}

}  // namespace chorale
