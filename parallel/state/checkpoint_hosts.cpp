#include "parallel/state/checkpoint_hosts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "parallel/state/checkpoint_sets.hpp"
#include "parallel/state/manifest.hpp"
#include "src/base/host.hpp"
#include "src/base/text.hpp"
#include "src/record/durable.hpp"

namespace chorale {
namespace fs = std::filesystem;
namespace {

// Lists the folder instead of looking up the name, because an NFS client can cache the fact that a name did not exist.
bool holds(const fs::path& folder, const fs::path& name) {
  std::error_code none;
  return std::ranges::any_of(fs::directory_iterator(folder, none),
                             [&](const auto& entry) { return entry.path().filename() == name; });
}

// Returns the names of all files of the set, or "" if the manifest of the set cannot be read on this rank.
std::string names_in_manifest(const fs::path& set) try {
  std::string names = "manifest.json";
  for (std::size_t rank = 0; rank < read_manifest(set).files.size(); ++rank)
    names += "/" + file_of(set, rank).filename().string();
  return names;
} catch (const std::exception&) {
  return "";
}

}  // namespace

PartialSet::PartialSet(fs::path folder, std::int64_t step, const Peers& peers)
    : peers_(peers), folder_(std::move(folder)), path_(folder_ / (set_name(step) + ".partial")) {
  require(step >= 0, "step {} cannot be saved", step);
}

std::vector<std::string> PartialSet::agreed(std::string mine, const std::exception_ptr& failure) const {
  std::vector<std::string> all = peers_.exchange(std::move(mine));
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].front() == '-') {
      std::error_code ignored;  // if the folder cannot be removed now, the next save tries again
      if (is_maker()) fs::remove_all(path_, ignored);
      if (failure) std::rethrow_exception(failure);
      throw Error(Exit::runtime, "the checkpoint was not saved",
                  fmt::format("rank {}: {}", rank, on_one_line(all[rank].substr(1))), "earlier checkpoints are intact");
    }
    all[rank].erase(0, 1);
  }
  return all;
}

// The first rank that does not see the folder creates the folder, and creates a file with a random name in the folder. The
// ranks that see this file share the file system.
int PartialSet::make() {
  std::vector<int> makers(static_cast<std::size_t>(peers_.size), -1);
  int made = 0;
  for (auto next = makers.begin(); next != makers.end(); next = std::ranges::find(makers, -1), ++made) {
    const auto rank = static_cast<std::size_t>(next - makers.begin());
    const bool is_mine = static_cast<int>(rank) == peers_.rank;
    const std::string mark = together([&] { return is_mine ? make_here() : ""; })[rank];
    const bool is_here = is_mine || (maker_ < 0 && holds(folder_, path_.filename()) && holds(path_, mark));
    if (is_here) maker_ = static_cast<int>(rank);
    const auto seen = together([&] { return is_here ? "yes" : ""; });
    for (std::size_t r = 0; r < seen.size(); ++r)
      if (!seen[r].empty()) makers[r] = static_cast<int>(rank);
    std::error_code ignored;  // a marker file that cannot be removed is harmless
    if (is_mine) fs::remove(path_ / mark, ignored);
  }
  return made;
}

std::string PartialSet::make_here() const {
  if (!fs::exists(folder_)) {
    if (folder_.has_parent_path()) fs::create_directories(folder_.parent_path());
    make_folder(folder_);
    sync_folder(folder_.has_parent_path() ? folder_.parent_path() : ".");
  }
  remove_partial_sets(folder_);
  make_folder(path_);
  const std::string mark = fmt::format("mark-{:08x}", std::random_device()());
  write_durably(path_ / mark, "");
  return mark;
}

void require_on_all_hosts(const fs::path& set, const Peers& peers) {
  std::string names = names_in_manifest(set);
  for (const std::string& theirs : peers.exchange(names))
    if (names.empty()) names = theirs;
  std::string here = host_name();
  std::vector<std::string> wanted = names.empty() ? std::vector<std::string>() : split(names, '/');
  for (const std::string& name : wanted)
    if (!fs::exists(set / name)) here += "/" + name;

  // The files that are missing on each host. If a file is missing on all ranks, the set is damaged, and loading reports the
  // damage.
  std::map<std::string, std::set<std::string>> lacking;
  std::map<std::string, int> times;
  for (const std::string& theirs : peers.exchange(here)) {
    const std::vector<std::string> parts = split(theirs, '/');
    for (std::size_t i = 1; i < parts.size(); ++i) {
      lacking[parts[0]].insert(parts[i]);
      ++times[parts[i]];
    }
  }
  if (std::ranges::any_of(times, [&](const auto& each) { return each.second == peers.size; })) return;
  std::vector<std::string> words;
  for (const auto& [host, files] : lacking)
    words.push_back(fmt::format("{} lacks {}", host, join({files.begin(), files.end()}, ", ")));
  if (!words.empty())
    usage_error("hosts lack files of the checkpoint", fmt::format("{}: {}", set.string(), join(words, "; ")),
                "copy the missing files from the other hosts, or use a folder that all hosts share");
}

}  // namespace chorale
