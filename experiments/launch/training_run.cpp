#include "experiments/launch/training_run.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "experiments/common/advice.hpp"
#include "parallel/state/checkpoint_sets.hpp"
#include "src/base/error.hpp"
#include "src/base/text.hpp"
#include "src/record/run_folder.hpp"

namespace chorale::launch {
namespace fs = std::filesystem;
namespace {

constexpr const char *default_save_interval = "10", *default_with_snapshots = "100";
// The options that the launch sets itself.
constexpr const char* own_options[] = {"run-dir", "load", "load-hf", "save-dir", "save-interval", "snapshot-interval"};

bool is_own(const Option& option) {
  return option.whole == Whole::layout || std::ranges::count(own_options, option.name) > 0;
}

}  // namespace

TrainingRun::TrainingRun(const std::vector<std::string>& words, std::int64_t ranks) {
  if (words.empty())
    usage_error("launch needs a program to start", "no words follow --",
                fmt::format("{} launch --ranks 4 -- train --preset tiny", program()));
  if (words[0] != "train")
    usage_error("launch starts training runs only", fmt::format("the program is \"{}\"", words[0]),
                fmt::format("{} launch --ranks 4 -- train …", program()));
  declared_ = std::make_unique<DeclaredCommand>(find_command("train"));
  declared_->take({words.begin() + 1, words.end()}, own_environment(), names_of_all_commands(),
                  {.launcher = "chorale launch", .size = static_cast<int>(ranks), .on_host = static_cast<int>(ranks)});
  if (options().option("no-save").text == "true")
    usage_error("a launch needs checkpoints", "--no-save is given", "leave out --no-save");
  const std::string &saves = options().option("save-dir").text, &load = options().option("load").text;
  if (!load.empty() && !saves.empty() && newest_saved_step(saves) >= 0)
    usage_error("two states were named to start from",
                fmt::format("--load {}, and --save-dir {} has checkpoints", load, saves),
                "leave out --load to continue those of --save-dir, or name another --save-dir");
  if (options().option("backend").text.starts_with("simulated:"))
    usage_error("a simulated run has no ranks to start", "--backend " + options().option("backend").text,
                "run it without launch");
}

std::int64_t TrainingRun::steps() const { return std::atoll(options().option("train-iters").text.c_str()); }

fs::path TrainingRun::save_dir(const fs::path& folder) const {
  const std::string& asked = options().option("save-dir").text;
  return asked.empty() ? folder / "checkpoints" : fs::absolute(asked).lexically_normal();
}

std::string TrainingRun::config_on(const std::string& layout) const {
  DeclaredCommand here(find_command("train"));
  for (const Option& option : options().all())
    if (!option.is_source && !is_own(option) && option.text != option.initial)
      here.options.set({option.name, option.text, option.origin, option.source});
  here.options.set({"layout", layout, "launch", Source::command_line});
  std::string text;
  for (const std::string& line : split(here.options.toml(), '\n')) {
    const Option* const option = here.options.find(trim(line.substr(0, line.find('='))));
    if (option && !is_own(*option) && option->text != option->initial) text += line + "\n";
  }
  return text;
}

std::vector<std::string> TrainingRun::command_on(const std::string& layout, const fs::path& folder,
                                                 std::int64_t snapshot_interval) const {
  const fs::path config = folder / "train.toml", saves = save_dir(folder);
  write_file(config, config_on(layout));
  const std::string interval = options().option("save-interval").text;
  std::vector<std::string> words{executable_,
                                 "train",
                                 "--config=" + config.string(),
                                 "--layout=" + layout,
                                 "--run-dir=" + folder.string(),
                                 "--save-dir=" + saves.string(),
                                 "--save-interval=" + (interval != "0"         ? interval
                                                       : snapshot_interval > 0 ? default_with_snapshots
                                                                               : default_save_interval),
                                 fmt::format("--snapshot-interval={}", snapshot_interval)};
  const std::string &load = options().option("load").text, &load_hf = options().option("load-hf").text;
  if (newest_saved_step(saves) >= 0)
    words.push_back("--load=" + saves.string());
  else if (!load.empty())
    words.push_back("--load=" + load);
  else if (!load_hf.empty())
    words.push_back("--load-hf=" + load_hf);
  return words;
}

}  // namespace chorale::launch
