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

fs::path nearest_existing(const fs::path& path, std::error_code& error) {
  fs::path there = fs::absolute(path);
  while (!fs::exists(there, error) && !error && there.has_relative_path()) there = there.parent_path();
  return there;
}

namespace {

// Returns why no file can be created in `folder`, or why the folder itself cannot be created. Tests the nearest existing
// folder at or above this path.
std::error_code why_not_writable(const fs::path& folder) {
  std::error_code error;
  const fs::path there = nearest_existing(folder, error);
  if (error) return error;
  if (!fs::is_directory(there, error)) return error ? error : std::make_error_code(std::errc::not_a_directory);
  std::string probe = (there / ".probe-XXXXXX").string();
  if (!mkdtemp(probe.data())) return {errno, std::generic_category()};
  fs::remove(probe, error);
  return error;
}

}  // namespace

void require_writable(const fs::path& folder, const std::string& option) {
  if (const std::error_code error = why_not_writable(folder))
    usage_error("the folder cannot be written", fmt::format("{}: {}", folder.string(), error.message()),
                fmt::format("choose another with {}, or fix its permissions", option));
}

void require_writable_file(const fs::path& file, const std::string& option, bool makes_folders) {
  const fs::path folder = fs::absolute(file).parent_path();
  std::error_code error = why_not_writable(folder);
  if (!error && !makes_folders && !fs::exists(folder, error)) error.assign(ENOENT, std::generic_category());
  if (std::error_code none; !error && fs::is_directory(file, none)) error = std::make_error_code(std::errc::is_a_directory);
  if (error)
    usage_error("the file cannot be written", fmt::format("{}: {}", file.string(), error.message()),
                fmt::format("name another with {}, or fix the permissions of its folder", option));
}

fs::path make_run_folder(const fs::path& parent, const std::string& command, const Clock& clock) {
  std::error_code trouble;  // not checked: without `parent`, creating the run folder fails
  fs::create_directories(parent, trouble);
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
    // The link is renamed to its final name, so `latest` is always valid. On a file system without links, there is no
    // `latest`.
    const fs::path link = parent / fmt::format(".latest-{}", id);
    fs::create_symlink(id, link, error);
    if (!error) fs::rename(link, parent / "latest", error);
    if (error) fs::remove(link, error);
    return folder;
  }
  throw Error(Exit::runtime, "no free name for the run folder", parent.string(), "remove old runs there");
}

std::string command_of_run(const std::string& name) {
  constexpr std::size_t time = 20, mark = 5;  // "2026-11-21T03-41-37-" and "-5fd2"
  const bool is_run =
      name.size() > time + mark && name[10] == 'T' && name[time - 1] == '-' && name[name.size() - mark] == '-';
  return is_run ? name.substr(time, name.size() - time - mark) : "";
}

fs::path make_run_folder_at(const fs::path& folder) {
  for (int i = 1; fs::exists(folder); ++i)
    if (const fs::path aside = fmt::format("{}.unfinished-{}", folder.string(), i); !fs::exists(aside))
      fs::rename(folder, aside);
  fs::create_directories(folder / "log");
  return folder;
}

fs::path record_named(const fs::path& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return path;
  for (const fs::path& record : {path / "run.h5", path / "latest" / "run.h5"})
    if (fs::exists(record, error)) return record;
  usage_error("this folder has no record", fmt::format("{} has neither run.h5 nor latest/run.h5", path.string()),
              "name the folder of a run, such as runs/latest, or a record");
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
