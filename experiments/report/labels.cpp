#include "experiments/report/labels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "experiments/common/each.hpp"
#include "experiments/report/launch_events.hpp"
#include "experiments/report/recorded_option.hpp"
#include "experiments/train/layout_flags.hpp"
#include "src/base/error.hpp"
#include "src/base/text.hpp"

namespace chorale::report {
namespace {

std::string layout_of(const RecordedRun& run) {
  Options options("train");
  train::LayoutFlags flags;
  flags.declare(options);
  try {
    for (const auto& [key, text] : run.settings)
      if (is_part_of(Whole::layout, "train", key)) options.set({key, text, "the record"});
    const auto recorded = run.root().words("layout");  // in the axis order that the run chose; older records lack it
    const std::string word = recorded.empty() ? to_string(flags.layout(run.ranks())) : recorded[0];
    const bool one_replica = word.starts_with("dp1.tp") || word.starts_with("dp1.pp");
    return one_replica ? word.substr(4) : word;
  } catch (const Error&) {  // a layout in an older record that cannot be parsed is shown unchanged
    return run.setting("layout");
  }
}

// The label of a run whose layout a launch has changed. Such a run is no repetition of a run on one of the layouts.
std::string label_of(const RecordedRun& run) {
  constexpr std::size_t most = 3;
  std::vector<std::string> names = each(layout_periods_of(launch_events_of(run)), &LayoutPeriod::layout);
  if (names.size() < 2) return run.layout;
  if (names.size() > most) names = {names.front(), "…", names.back()};
  return join(names, " → ");
}

// A name such as "6×384" does not state every setting of the shape. If two runs would have the same label, adds the settings
// in which they differ.
void tell_shapes_apart(std::vector<RecordedRun>& runs) {
  std::map<std::string, std::vector<RecordedRun*>> by_label;
  for (RecordedRun& run : runs)
    if (run.command != another_program) by_label[run.label].push_back(&run);
  for (const auto& [label, same] : by_label) {
    std::set<std::string> of_shape;
    for (const RecordedRun* const run : same)
      for (const auto& [key, value] : run->settings)
        if (is_part_of(Whole::shape, run->command, key)) of_shape.insert(key);
    for (const std::string& key : of_shape) {
      const auto differs = [&](const RecordedRun* run) { return run->setting(key) != same[0]->setting(key); };
      if (std::ranges::none_of(same, differs)) continue;
      for (RecordedRun* const run : same) run->label += ", " + in_label(key, run->setting(key));
    }
  }
}

// A row that was not measured by chorale is never a repetition of a run of chorale.
void name_files(std::vector<RecordedRun>& runs) {
  std::set<std::string> ours;
  for (const RecordedRun& run : runs)
    if (run.source) ours.insert(run.label);
  for (RecordedRun& run : runs)
    if (!run.source && ours.contains(run.label))
      run.label += fmt::format(" ({})", std::filesystem::path(run.id.substr(0, run.id.rfind(':'))).filename().string());
}

}  // namespace

void label_all(std::vector<RecordedRun>& runs, const std::string& metric) {
  std::map<std::string, std::set<std::string>> differing;  // settings, by command
  for (const RecordedRun& run : runs)
    if (!differing.contains(run.command)) differing[run.command] = settings_that_differ(runs, run.command);
  for (RecordedRun& run : runs) {
    std::set<std::string> keys = differing[run.command];
    if (metric == by_loss) keys.erase("seed");
    std::vector<std::string> words;
    if (run.command == another_program) continue;  // runs of other programs already have a label
    if (run.command == "train") {
      run.layout = layout_of(run);
      words.push_back(label_of(run));
    } else
      words.push_back(fmt::format("{} on {} rank{}", run.command, run.ranks(), run.ranks() == 1 ? "" : "s"));
    const auto is_shape = [&](const std::string& key) { return is_part_of(Whole::shape, run.command, key); };
    if (std::ranges::any_of(keys, is_shape)) words.push_back(run.setting("num-layers") + "×" + run.setting("hidden-size"));
    for (const std::string& key : keys) {
      if (!run.settings.count(key)) continue;
      run.differing[key] = in_label(key, run.setting(key));
      if (!is_part_of(Whole::layout, run.command, key) && !is_shape(key)) words.push_back(run.differing[key]);
    }
    run.label = join(words, ", ");
  }
  name_files(runs);
  tell_shapes_apart(runs);
}

std::set<std::string> settings_that_differ(const std::vector<RecordedRun>& runs, const std::string& command) {
  std::map<std::string, std::set<std::string>> values;
  for (const RecordedRun& run : runs)
    if (run.command == command)
      for (const auto& [key, value] : run.settings) values[key].insert(value);
  std::set<std::string> keys;
  for (const auto& [key, seen] : values)
    if (seen.size() > 1 && tells_runs_apart(command, key)) keys.insert(key);
  return keys;
}

std::string in_label(const std::string& setting, const std::string& value) {
  static const std::set<std::string> needs_key{"auto", "none", "true", "false", "yes", "no", ""};
  const bool is_word = !needs_key.count(value) && value.find_first_of("0123456789") == std::string::npos;
  return is_word || setting == "dtype" ? value : setting + " " + (value.empty() ? "-" : value);
}

}  // namespace chorale::report
