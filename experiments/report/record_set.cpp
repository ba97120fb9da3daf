#include "experiments/report/record_set.hpp"

#include <fmt/format.h>

#include <span>

#include "experiments/common/command.hpp"
#include "experiments/common/each.hpp"
#include "experiments/common/statistics.hpp"
#include "experiments/report/csv_rows.hpp"
#include "experiments/report/labels.hpp"
#include "experiments/report/recorded_option.hpp"
#include "experiments/report/training.hpp"
#include "src/base/error.hpp"
#include "src/base/settings.hpp"
#include "src/base/text.hpp"

namespace chorale::report {
namespace {

double number_in(const std::string& cell) { return parse_number(cell).value_or(std::nan("")); }

std::string found_in(const std::map<std::string, std::string>& texts, const std::string& name) {
  const auto found = texts.find(name);
  return found == texts.end() ? "" : found->second;
}

// Maps the id of each run of a suite to the name of the run's repetition.
std::map<std::string, std::string> repetitions_in(const RecordSource& source) {
  std::map<std::string, std::string> repetitions;
  const RecordGroup summary = source.group("/summary");
  const auto ids = summary.words("id"), numbers = summary.words("repetition");
  for (std::size_t run = 0; run < std::min(ids.size(), numbers.size()); ++run) repetitions[ids[run]] = numbers[run];
  return repetitions;
}

// Names the launch and the block of each run of a file. All runs of a suite have the same launch. If the launches of two
// programs alternated in one session, their two records name the launches after the session.
void name_launches(std::span<RecordedRun> runs, const RecordSource& source) {
  const std::string record = source.reader.attribute("run_id"), session = source.reader.attribute("session");
  const bool holds_launches = !source.reader.attribute("launches").empty();
  const auto repetitions = repetitions_in(source);
  for (RecordedRun& run : runs) {
    const auto repetition = repetitions.find(run.id);
    run.launch = (session.empty() ? record : session) + (holds_launches ? "/" + run.id : "");
    run.block = run.launch + "/" + (repetition == repetitions.end() ? run.id : repetition->second);
  }
}

// Returns the subcommand in a command line. The program's path can contain spaces. Records of other programs have no
// subcommand.
std::string command_in(const std::string& command_line) {
  const auto words = split(command_line, ' ');
  const auto names_command = [](const std::string& word) {
    return std::ranges::count(all_commands(), word, &CommandRow::name) > 0;
  };
  const auto found = words.size() > 1 ? std::find_if(words.begin() + 1, words.end(), names_command) : words.end();
  return found == words.end() ? "" : *found;
}

RecordedRun read_run(const std::shared_ptr<const RecordSource>& source, const std::string& prefix) {
  RecordedRun run{.source = source, .prefix = prefix};
  for (const auto& [name, value] : source->reader.attributes(prefix.empty() ? "/" : prefix)) run.attributes[name] = value;
  run.id = prefix.empty() ? run.attribute("run_id") : prefix.substr(prefix.rfind('/') + 1);
  run.status = run.attribute("status");
  for (const std::string& text : run.group("config").words("toml"))
    for (const Setting& setting : read_toml(text, run.id)) run.settings[setting.key] = setting.text;
  if (const std::string label = run.attribute("label"); !label.empty()) {
    run.label = label;
    run.command = another_program;
    return run;
  }
  run.command = command_in(run.attribute("cmdline"));
  if (run.command == "launch") {  // a launch records the run that it starts, with all its steps
    run.command = "train";
    run.settings = with_defaults(run.settings, "train");
  }
  const bool trained = !run.group("train").numbers("step").empty() || run.settings.count("train-iters");
  if (run.command.empty() && trained) run.command = "train";
  return run;
}

// Makes the seed the block of a run, because repetitions with the same seed have the same loss.
void make_seeds_blocks(std::vector<RecordedRun>& runs) {
  for (RecordedRun& run : runs)
    if (const std::string seed = run.setting("seed"); run.command == "train" && !seed.empty()) run.block = "seed " + seed;
}

std::int64_t told_by(const Reader& suite) {
  const std::string warm_up = suite.attribute("warm_up");
  return warm_up.empty() ? by_rule : std::atoll(warm_up.c_str());
}

}  // namespace

std::int64_t warm_up_of(std::int64_t steps, std::int64_t warm_up) {
  const std::int64_t asked = warm_up >= 0 ? warm_up : std::min<std::int64_t>(10, (steps + 9) / 10);
  return steps > asked ? asked : 0;
}

std::vector<double> after_warm_up(std::vector<double> of_steps, std::int64_t warm_up) {
  of_steps.erase(of_steps.begin(), of_steps.begin() + warm_up_of(std::ssize(of_steps), warm_up));
  std::erase_if(of_steps, [](double value) { return !std::isfinite(value); });
  return of_steps;
}

const Variable* RecordGroup::find(const std::string& name) const {
  const auto found = std::ranges::find(*variables_, name, &Variable::name);
  return found == variables_->end() ? nullptr : &*found;
}

std::vector<std::string> RecordGroup::words(const std::string& name) const {
  const Variable* variable = find(name);
  return variable ? variable->cells : std::vector<std::string>{};
}

std::vector<double> RecordGroup::numbers(const std::string& name) const { return each(words(name), number_in); }

std::vector<std::int64_t> RecordGroup::shape(const std::string& name) const {
  const Variable* variable = find(name);
  if (!variable) return {};
  const bool rows = !variable->dimensions.empty() && variable->dimensions.front() == "step";
  return {variable->shape.begin() + (rows ? 1 : 0), variable->shape.end()};
}

std::vector<double> RecordGroup::medians(const std::string& name) const {
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

RecordGroup RecordSource::group(const std::string& path) const {
  if (const auto found = read.find(path); found != read.end()) return found->second;
  const bool exists = std::ranges::count(groups, path) > 0;
  return read[path] = exists ? RecordGroup(reader.variables(path), warm_up) : RecordGroup();
}

std::vector<double> RecordedRun::steady(std::vector<double> of_steps) const {
  return after_warm_up(std::move(of_steps), source ? source->warm_up : by_rule);
}

bool RecordedRun::has(const std::string& group) const {
  if (!source) return tables.contains(group);
  return std::count(source->groups.begin(), source->groups.end(), prefix + "/" + group) > 0;
}

RecordGroup RecordedRun::group(const std::string& name) const {
  if (!has(name)) return RecordGroup();
  return source ? source->group(prefix + "/" + name) : RecordGroup(tables.at(name), by_rule);
}

RecordGroup RecordedRun::root() const { return source ? source->group(prefix.empty() ? "/" : prefix) : RecordGroup(); }

std::int64_t RecordedRun::ranks() const { return std::max<std::int64_t>(1, std::atoll(attribute("jobsize").c_str())); }

std::string RecordedRun::setting(const std::string& key) const { return found_in(settings, key); }

std::string RecordedRun::attribute(const std::string& name) const { return found_in(attributes, name); }

std::vector<std::vector<const RecordedRun*>> RecordSet::labeled(const std::string& group) const {
  std::vector<const RecordedRun*> with_group;
  for (const RecordedRun& run : runs)
    if (run.has(group)) with_group.push_back(&run);
  return grouped(with_group, &RecordedRun::label);
}

std::map<std::string, std::string> RecordSet::common_settings() const {
  const auto is_ours = [](const RecordedRun& run) { return run.command != another_program; };
  const auto first = std::ranges::find_if(runs, is_ours);
  if (first == runs.end()) return {};
  std::map<std::string, std::string> common = first->settings;
  for (const RecordedRun& run : runs)
    if (is_ours(run)) std::erase_if(common, [&](const auto& entry) { return run.setting(entry.first) != entry.second; });
  return common;
}

std::set<std::string> RecordSet::differing_settings() const { return settings_that_differ(runs, "train"); }

RecordSet read_records(const std::vector<std::string>& files, std::int64_t warm_up, const std::string& metric) {
  RecordSet set{.files = files};
  std::string told = metric;
  for (const std::string& file : with_rows_beside(files)) {
    if (is_csv(file)) {
      for (RecordedRun& run : runs_in_csv(file)) set.runs.push_back(std::move(run));
      continue;
    }
    Reader reader(file);
    std::vector<std::string> groups = reader.groups();
    const std::int64_t here = warm_up == by_rule ? told_by(reader) : warm_up;
    const auto source = std::make_shared<const RecordSource>(RecordSource{std::move(reader), std::move(groups), here});
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
      set.runs, [](const RecordedRun& run) { return run.command == "train" && std::isnan(held_out_loss(run)); });
  if (set.metric_is_told)
    set.metric = told;
  else if (have_losses)
    set.metric = metric_for(set.differing_settings());
  label_all(set.runs, set.metric);
  if (set.metric == by_loss) make_seeds_blocks(set.runs);
  return set;
}

}  // namespace chorale::report
