#include "parallel/state/checkpoint_sets.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <tuple>

#include "src/base/error.hpp"
#include "src/record/run_folder.hpp"

namespace chorale {
namespace fs = std::filesystem;
namespace {

struct Set {
  std::string name;
  std::int64_t step = -1;  // −1 if the name is not that of a set
  std::string suffix;
};

Set set_named(const std::string& name) {
  Set set{.name = name};
  if (!name.starts_with("step-")) return set;
  const char* const end = name.data() + name.size();
  const auto [after, error] = std::from_chars(name.data() + 5, end, set.step);
  if (error != std::errc{}) return Set{.name = name};
  set.suffix.assign(after, end);
  return set;
}

std::vector<Set> sets_in(const fs::path& folder, const std::string& suffix) {
  std::vector<Set> sets;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (const Set set = set_named(entry.path().filename().string()); set.step >= 0 && set.suffix == suffix)
      sets.push_back(set);
  return sets;
}

// Renames the set to *.partial before removing it. Otherwise a crash during the removal would leave a damaged set with the
// name of a complete set.
void remove_set(const fs::path& set) {
  const fs::path doomed =
      set_named(set.filename().string()).suffix == ".partial" ? set : fs::path(set.string() + ".partial");
  std::error_code ignored;  // if the set cannot be removed now, the next save tries again
  fs::remove_all(doomed, ignored);
  if (doomed == set) return;
  fs::rename(set, doomed, ignored);
  fs::remove_all(doomed, ignored);
}

// Finds the newest run in this folder that has a checkpoint, and also searches the suites in this folder. Returns "" if
// there is none. The name of a run begins with its start time, so the newest run has the greatest name.
fs::path newest_with_checkpoint_in(const fs::path& folder, bool also_in_suites) {
  fs::path newest;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.is_symlink(error)) continue;
    fs::path found;
    if (!sets_to_load(entry.path() / "checkpoints").empty())
      found = entry.path();
    else if (also_in_suites && fs::exists(entry.path() / "suite.toml", error))
      found = newest_with_checkpoint_in(entry.path(), false);
    if (!found.empty() && found > newest) newest = found;
  }
  return newest;
}

}  // namespace

std::string set_name(std::int64_t step) { return fmt::format("step-{}", step); }

fs::path folder_of_sets(const fs::path& path) { return fs::exists(path / "checkpoints") ? path / "checkpoints" : path; }

void refuse_without_checkpoint(const fs::path& folder) {
  if (fs::exists(folder / "config.json") || fs::exists(folder / "model.safetensors"))
    usage_error("there is no checkpoint", fmt::format("{} is a Hugging Face model", folder.string()),
                fmt::format("start from its weights: --load-hf {}", folder.string()));
  // The path of the run, without a trailing "checkpoints" or slash. A slash would make read_symlink follow the link.
  const bool is_run = folder.has_filename() && folder.filename() != "checkpoints";
  const fs::path run = is_run ? folder : folder.parent_path();
  std::error_code no_link;
  const fs::path target = fs::read_symlink(run, no_link);
  const std::string command = command_of_run(target.filename().string());
  const std::string place = no_link ? run.string()
                                    : fmt::format("{} is now {}{}, which", run.string(), target.string(),
                                                  command.empty() ? "" : ", a run of chorale " + command);
  const std::string other =
      newest_with_checkpoint_in(run.has_parent_path() ? run.parent_path() : ".", true).lexically_normal().string();
  usage_error("there is no checkpoint", fmt::format("{} has neither a manifest.json nor a step-N", place),
              other.empty() ? "no run beside it has one: check the path given to --load"
                            : "load the newest run that has one: --load " + other);
}

void refuse_damaged(std::size_t sets, const std::string& first_trouble) {
  throw Error(Exit::runtime, sets == 1 ? "the checkpoint is damaged" : fmt::format("all {} checkpoints are damaged", sets),
              first_trouble, "restore one from a copy, or train from the start");
}

std::vector<std::string> sets_to_load(const fs::path& folder) {
  std::error_code none;
  const Set latest = set_named(fs::read_symlink(folder / "latest", none).string());
  std::vector<Set> sets = sets_in(folder, "");
  for (Set& set : sets_in(folder, ".old")) sets.push_back(std::move(set));
  const bool has_latest = latest.step >= 0 && latest.suffix.empty();
  const bool missing = std::none_of(sets.begin(), sets.end(), [&](const Set& set) { return set.name == latest.name; });
  if (has_latest && missing) sets.push_back(latest);  // loading then warns that the set is missing
  std::sort(sets.begin(), sets.end(), [&](const Set& a, const Set& b) {
    const auto rank = [&](const Set& set) {
      return std::tuple(has_latest && set.step > latest.step, -set.step, set.suffix);
    };
    return rank(a) < rank(b);
  });
  std::vector<std::string> names;
  for (const Set& set : sets) names.push_back(set.name);
  return names;
}

std::int64_t newest_saved_step(const fs::path& path) {
  std::error_code missing;
  const fs::path folder = folder_of_sets(path);
  if (fs::exists(folder / "manifest.json", missing)) return set_named(folder.filename().string()).step;
  const std::vector<std::string> names = sets_to_load(folder);
  return names.empty() ? -1 : set_named(names[0]).step;
}

void remove_partial_sets(const fs::path& folder) {
  for (const Set& set : sets_in(folder, ".partial")) remove_set(folder / set.name);
}

void remove_old_sets(const fs::path& folder, std::int64_t newest_step) {
  for (const Set& set : sets_in(folder, ".old")) remove_set(folder / set.name);
  std::int64_t before = -1;
  const std::vector<Set> sets = sets_in(folder, "");
  for (const Set& set : sets)
    if (set.step < newest_step) before = std::max(before, set.step);
  for (const Set& set : sets)
    if (set.step < before) remove_set(folder / set.name);
}

}  // namespace chorale
