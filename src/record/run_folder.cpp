#include "src/record/run_folder.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <random>

#include "src/base/error.hpp"
#include "src/base/text.hpp"

namespace chorale {
namespace fs = std::filesystem;

void require_writable(const fs::path& parent) {
  std::error_code error;
  fs::create_directories(parent, error);
  if (!error) {
    std::string probe = (parent / ".probe-XXXXXX").string();
    if (mkdtemp(probe.data()))
      fs::remove(probe, error);
    else
      error.assign(errno, std::generic_category());
  }
  if (error)
    usage_error("the run folder cannot be written", fmt::format("{}: {}", parent.string(), error.message()),
                "choose another with --run-dir, or fix its permissions");
}

fs::path make_run_folder(const fs::path& parent, const std::string& command, const Clock& clock) {
  const std::string time = replace_all(iso_time(clock.wall_seconds()).substr(0, 19), ':', '-');
  std::random_device entropy;
  for (int attempt = 0; attempt < 100; ++attempt) {
    const std::string id = fmt::format("{}-{}-{:04x}", time, command, entropy() & 0xffff);
    const fs::path folder = parent / id;
    std::error_code error;
    if (!fs::create_directory(folder, error)) {
      if (!error) continue;  // the name is taken
      throw Error(Exit::runtime, "the run folder cannot be created", fmt::format("{}: {}", folder.string(), error.message()),
                  "choose another with --run-dir");
    }
    fs::create_directory(folder / "log");
    // The link is renamed into place, so `latest` is always valid. A file system without links gets no `latest`.
    const fs::path link = parent / fmt::format(".latest-{}", id);
    fs::create_symlink(id, link, error);
    if (!error) fs::rename(link, parent / "latest", error);
    if (error) fs::remove(link, error);
    return folder;
  }
  throw Error(Exit::runtime, "no free name for the run folder", parent.string(), "remove old runs there");
}

fs::path make_run_folder_at(const fs::path& folder) {
  for (int i = 1; fs::exists(folder); ++i)
    if (const fs::path aside = fmt::format("{}.unfinished-{}", folder.string(), i); !fs::exists(aside))
      fs::rename(folder, aside);
  fs::create_directories(folder / "log");
  return folder;
}

void write_file(const fs::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file)
    throw Error(Exit::runtime, "a file cannot be written", fmt::format("{}: {}", path.string(), std::strerror(errno)),
                "check that the disk has room");
}

}  // namespace chorale
