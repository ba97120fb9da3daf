#include "experiments/report/record_set.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>
#include <span>

#include "experiments/command.hpp"
#include "experiments/report/csv_rows.hpp"
#include "experiments/report/training.hpp"
#include "experiments/statistics.hpp"
#include "experiments/train/layout_flags.hpp"
#include "src/base/error.hpp"
#include "src/base/settings.hpp"
#include "src/base/text.hpp"

namespace chorale::report {
namespace {

// Settings that a label omits, because the label names the layout or the model's shape instead, or because they change no
// result.
const std::set<std::string> said_by_layout = [] {
  std::set<std::string> flags{
      "layout",   "zero",           "shard-size", "hpz", "use-distributed-optimizer", "sequence-parallel",
      "schedule", "virtual-stages", "order"};
  for (const AxisRow& axis : all_axes()) flags.insert(axis.name);
  return flags;
}();
const std::set<std::string> said_by_shape{
    "family",           "num-layers", "hidden-size", "ffn-hidden-size",  "num-attention-heads",
    "num-query-groups", "vocab-size", "rotary-base", "untie-embeddings", "preset"};
const std::set<std::string> says_nothing{"run-dir", "out",    "log-level", "log-interval", "save-interval", "no-save",
                                         "load",    "format", "config",    "trace-steps",  "launches",      "order"};

double number_in(const std::string& cell) {
  char* end = nullptr;
  const double value = std::strtod(cell.c_str(), &end);
  return cell.empty() || *end ? std::nan("") : value;
}

std::string layout_of(const Run& run) {
  Options options("train");
  train::LayoutFlags flags;
  flags.declare(options);
  try {
    for (const auto& [key, text] : run.settings)
      if (options.find(key) && said_by_layout.count(key)) options.set({key, text, "the record"});
    const auto recorded = run.root().words("layout");  // with the order of axes that the run chose; older records lack it
    const std::string word = recorded.empty() ? to_string(flags.layout(run.ranks())) : recorded[0];
    const bool one_replica = word.starts_with("dp1.tp") || word.starts_with("dp1.pp");
    return one_replica ? word.substr(4) : word;
  } catch (const Error&) {  // the record has an older schema with other layouts: show its layout unchanged
    return run.setting("layout");
  }
}

std::set<std::string> settings_that_differ(const std::vector<Run>& runs, const std::string& command) {
  std::map<std::string, std::set<std::string>> values;
  for (const Run& run : runs)
    if (run.command == command)
      for (const auto& [key, value] : run.settings) values[key].insert(value);
  std::set<std::string> keys;
  for (const auto& [key, seen] : values)
    if (seen.size() > 1 && tells_runs_apart(key)) keys.insert(key);
  return keys;
}

// "6×384" leaves out settings of the shape. Where runs would have equal labels, adds those that differ between them.
void tell_shapes_apart(std::vector<Run>& runs) {
  std::map<std::string, std::vector<Run*>> by_label;
  for (Run& run : runs) by_label[run.label].push_back(&run);
  for (const auto& [label, same] : by_label)
    for (const std::string& key : said_by_shape) {
      const auto differs = [&](const Run* run) { return run->setting(key) != same[0]->setting(key); };
      if (key == "preset" || std::ranges::none_of(same, differs)) continue;
      for (Run* const run : same) run->label += ", " + in_label(key, run->setting(key));
    }
}

void label_all(std::vector<Run>& runs, const std::string& metric) {
  for (Run& run : runs) {
    std::set<std::string> keys = settings_that_differ(runs, run.command);
    if (metric == by_loss) keys.erase("seed");
    std::vector<std::string> words;
    if (run.command == another_program) continue;  // it has its label
    if (run.command == "train")
      words.push_back(run.layout = layout_of(run));
    else
      words.push_back(fmt::format("{} on {} rank{}", run.command, run.ranks(), run.ranks() == 1 ? "" : "s"));
    if (std::any_of(keys.begin(), keys.end(), [](const std::string& key) { return said_by_shape.count(key) > 0; }))
      words.push_back(run.setting("num-layers") + "×" + run.setting("hidden-size"));
    for (const std::string& key : keys) {
      if (!run.settings.count(key)) continue;
      run.differing[key] = in_label(key, run.setting(key));
      if (!said_by_layout.count(key) && !said_by_shape.count(key)) words.push_back(run.differing[key]);
    }
    run.label = join(words, ", ");
  }
  tell_shapes_apart(runs);
}

// The repetition of each run of a suite, by run id.
std::map<std::string, std::string> repetitions_in(const Source& source) {
  std::map<std::string, std::string> repetitions;
  if (!std::count(source.groups.begin(), source.groups.end(), "/summary")) return repetitions;
  const Group summary(source.reader.variables("/summary"), by_rule);
  const auto ids = summary.words("id"), numbers = summary.words("repetition");
  for (std::size_t run = 0; run < std::min(ids.size(), numbers.size()); ++run) repetitions[ids[run]] = numbers[run];
  return repetitions;
}

// Names the launch and the block of each run of a file. All runs of a suite have the same launch. Launches of a session
// alternated with the launches in another record, so both records name them after the session.
void name_launches(std::span<Run> runs, const Source& source) {
  const std::string record = source.reader.attribute("run_id"), session = source.reader.attribute("session");
  const bool holds_launches = !source.reader.attribute("launches").empty();
  const auto repetitions = repetitions_in(source);
  for (Run& run : runs) {
    const auto repetition = repetitions.find(run.id);
    run.launch = (session.empty() ? record : session) + (holds_launches ? "/" + run.id : "");
    run.block = run.launch + "/" + (repetition == repetitions.end() ? run.id : repetition->second);
  }
}

// The subcommand in a command line. The program's path may contain spaces. Records of other programs have no subcommand.
std::string command_in(const std::string& command_line) {
  const auto words = split(command_line, ' ');
  const auto names_command = [](const std::string& word) {
    return std::ranges::any_of(all_commands(), [&](const CommandRow& row) { return word == row.name; });
  };
  const auto found = words.size() > 1 ? std::find_if(words.begin() + 1, words.end(), names_command) : words.end();
  return found == words.end() ? "" : *found;
}

Run read_run(const std::shared_ptr<const Source>& source, const std::string& prefix) {
  Run run{.source = source, .prefix = prefix};
  for (const auto& [name, value] : source->reader.attributes(prefix.empty() ? "/" : prefix)) run.attributes[name] = value;
  const auto attribute = [&](const std::string& name) {
    const auto found = run.attributes.find(name);
    return found == run.attributes.end() ? "" : found->second;
  };
  run.id = prefix.empty() ? attribute("run_id") : prefix.substr(prefix.rfind('/') + 1);
  run.status = attribute("status");
  for (const std::string& text : run.group("config").words("toml"))
    for (const Setting& setting : read_toml(text, run.id)) run.settings[setting.key] = setting.text;
  if (const std::string label = attribute("label"); !label.empty()) {
    run.label = label, run.command = another_program;
    return run;
  }
  run.command = command_in(attribute("cmdline"));
  const bool trained = !run.group("train").numbers("step").empty() || run.settings.count("train-iters");
  if (run.command.empty() && trained) run.command = "train";
  return run;
}

// With one seed, repetitions have the same loss.
void make_seeds_blocks(std::vector<Run>& runs) {
  for (Run& run : runs)
    if (const std::string seed = run.setting("seed"); run.command == "train" && !seed.empty()) run.block = "seed " + seed;
}

// With the CSV files that lie beside them, unless they are named too.
std::vector<std::string> with_rows_beside(const std::vector<std::string>& files) {
  std::vector<std::string> all;
  for (const std::string& file : files) {
    all.push_back(file);
    const std::filesystem::path beside = std::filesystem::path(file).parent_path() / rows_beside;
    const auto is_same = [&](const std::string& other) {
      std::error_code error;
      return std::filesystem::equivalent(other, beside, error);
    };
    if (std::filesystem::is_regular_file(beside) && std::ranges::none_of(files, is_same) &&
        std::ranges::none_of(all, is_same))
      all.push_back(beside.string());
  }
  return all;
}

std::int64_t told_by(const Reader& suite) {
  const std::string warm_up = suite.attribute("warm_up");
  return warm_up.empty() ? by_rule : std::atoll(warm_up.c_str());
}

}  // namespace

std::string in_label(const std::string& setting, const std::string& value) {
  static const std::set<std::string> needs_key{"auto", "none", "true", "false", "yes", "no", ""};
  const bool is_word = !needs_key.count(value) && value.find_first_of("0123456789") == std::string::npos;
  return is_word || setting == "dtype" ? value : setting + " " + (value.empty() ? "-" : value);
}

bool tells_runs_apart(const std::string& setting) { return !says_nothing.count(setting); }

std::int64_t warm_up_of(std::int64_t steps, std::int64_t warm_up) {
  const std::int64_t asked = warm_up >= 0 ? warm_up : std::min<std::int64_t>(10, (steps + 9) / 10);
  return steps > asked ? asked : 0;
}

std::vector<double> after_warm_up(std::vector<double> of_steps, std::int64_t warm_up) {
  of_steps.erase(of_steps.begin(), of_steps.begin() + warm_up_of(std::ssize(of_steps), warm_up));
  std::erase_if(of_steps, [](double value) { return !std::isfinite(value); });
  return of_steps;
}

const Variable* Group::find(const std::string& name) const {
  const auto found =
      std::find_if(variables_.begin(), variables_.end(), [&](const Variable& variable) { return variable.name == name; });
  return found == variables_.end() ? nullptr : &*found;
}

std::vector<std::string> Group::words(const std::string& name) const {
  const Variable* variable = find(name);
  return variable ? variable->cells : std::vector<std::string>{};
}

std::vector<double> Group::numbers(const std::string& name) const {
  std::vector<double> values;
  for (const std::string& cell : words(name)) values.push_back(number_in(cell));
  return values;
}

std::vector<std::int64_t> Group::shape(const std::string& name) const {
  const Variable* variable = find(name);
  if (!variable) return {};
  const bool rows = !variable->dimensions.empty() && variable->dimensions.front() == "step";
  return {variable->shape.begin() + (rows ? 1 : 0), variable->shape.end()};
}

std::vector<double> Group::medians(const std::string& name) const {
  const std::vector<double> values = numbers(name);
  std::size_t places = 1;
  for (const std::int64_t size : shape(name)) places *= static_cast<std::size_t>(size);
  if (values.empty() || places == 0) return {};
  std::vector<double> medians(places, std::nan(""));
  for (std::size_t place = 0; place < places; ++place) {
    std::vector<double> of_steps;
    for (std::size_t at = place; at < values.size(); at += places) of_steps.push_back(values[at]);
    const std::vector<double> kept = after_warm_up(std::move(of_steps), warm_up_);
    if (!kept.empty()) medians[place] = summarize(kept).median;
  }
  return medians;
}

std::vector<double> Run::steady(std::vector<double> of_steps) const {
  return after_warm_up(std::move(of_steps), source ? source->warm_up : by_rule);
}

bool Run::has(const std::string& group) const {
  if (!source) return tables.contains(group);
  return std::count(source->groups.begin(), source->groups.end(), prefix + "/" + group) > 0;
}

Group Run::group(const std::string& name) const {
  if (!has(name)) return Group();
  return source ? Group(source->reader.variables(prefix + "/" + name), source->warm_up) : Group(tables.at(name), by_rule);
}

Group Run::root() const {
  const std::string path = prefix.empty() ? "/" : prefix;
  return std::ranges::count(source->groups, path) ? Group(source->reader.variables(path), by_rule) : Group();
}

std::int64_t Run::ranks() const {
  const auto found = attributes.find("jobsize");
  return found == attributes.end() ? 1 : std::max<std::int64_t>(1, std::atoll(found->second.c_str()));
}

std::string Run::setting(const std::string& key) const {
  const auto found = settings.find(key);
  return found == settings.end() ? "" : found->second;
}

std::vector<std::vector<const Run*>> RecordSet::labelled(const std::string& group) const {
  std::vector<std::vector<const Run*>> all;
  for (const Run& run : runs) {
    if (!run.has(group)) continue;
    const auto same =
        std::find_if(all.begin(), all.end(), [&](const auto& some) { return some.front()->label == run.label; });
    if (same == all.end())
      all.push_back({&run});
    else
      same->push_back(&run);
  }
  return all;
}

std::map<std::string, std::string> RecordSet::common_settings() const {
  const auto is_ours = [](const Run& run) { return run.command != another_program; };
  const auto first = std::ranges::find_if(runs, is_ours);
  if (first == runs.end()) return {};
  std::map<std::string, std::string> common = first->settings;
  for (const Run& run : runs)
    if (is_ours(run)) std::erase_if(common, [&](const auto& entry) { return run.setting(entry.first) != entry.second; });
  return common;
}

std::set<std::string> RecordSet::differing_settings() const { return settings_that_differ(runs, "train"); }

RecordSet read_records(const std::vector<std::string>& files, std::int64_t warm_up, const std::string& metric) {
  RecordSet set{.files = files};
  std::string told = metric;
  for (const std::string& file : with_rows_beside(files)) {
    if (is_csv(file)) {
      for (Run& run : runs_in_csv(file)) set.runs.push_back(std::move(run));
      continue;
    }
    Reader reader(file);
    std::vector<std::string> groups = reader.groups();
    const std::int64_t here = warm_up == by_rule ? told_by(reader) : warm_up;
    const auto source = std::make_shared<const Source>(Source{std::move(reader), std::move(groups), here});
    if (std::count(source->groups.begin(), source->groups.end(), "/config"))
      for (const Variable& variable : source->reader.variables("/config")) {
        if (variable.name == "question")
          set.questions.insert(set.questions.end(), variable.cells.begin(), variable.cells.end());
        if (variable.name == "metric" && told == by_settings) told = variable.cells.at(0);
      }
    std::set<std::string> prefixes;
    std::vector<std::string> ordered;
    for (const std::string& group : source->groups) {
      const auto parts = split(group, '/');
      if (parts.size() >= 3 && parts[1] == "runs" && prefixes.insert(parts[2]).second)
        ordered.push_back("/runs/" + parts[2]);
    }
    if (ordered.empty()) ordered.push_back("");
    const std::size_t before = set.runs.size();
    for (const std::string& prefix : ordered) set.runs.push_back(read_run(source, prefix));
    name_launches(std::span(set.runs).subspan(before), *source);
  }
  set.metric_is_told = std::ranges::count(metrics(), told) > 0;
  const bool have_losses = std::ranges::none_of(
      set.runs, [](const Run& run) { return run.command == "train" && std::isnan(held_out_loss(run)); });
  if (set.metric_is_told)
    set.metric = told;
  else if (have_losses)
    set.metric = metric_for(set.differing_settings());
  label_all(set.runs, set.metric);
  if (set.metric == by_loss) make_seeds_blocks(set.runs);
  return set;
}

}  // namespace chorale::report
