#include "experiments/compare/prepared.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "experiments/common/advice.hpp"
#include "experiments/common/each.hpp"
#include "experiments/compare/outside.hpp"
#include "experiments/train/layout_flags.hpp"
#include "parallel/plan/plan.hpp"
#include "parallel/plan/room.hpp"
#include "src/base/error.hpp"
#include "src/base/settings.hpp"
#include "src/base/text.hpp"

namespace chorale::compare {
namespace {

// Returns a command that writes a record, with its default options.
Prepared fresh(const std::string& name) {
  const CommandRow& row = find_command(name);
  if (name != "train" && name != "bench")
    usage_error(fmt::format("{} cannot run in a suite", name), "only commands that record their runs can",
                "command = \"train\" or \"bench\"");
  return std::make_unique<DeclaredCommand>(row);
}

// Returns the number of ranks of the run's layout; 0 if the run names no layout.
std::int64_t ranks_of_layout(const SuiteRun& run) {
  const Setting* const word = find(run.settings, "layout");
  return word ? train::with_least_sizes(parse_layout(word->text, 0)).ranks() : 0;
}

// Checks each setting alone, so that all mistakes are found, and then all settings together. If a setting is wrong, the
// second check is skipped and the result is false, because the default of the wrong setting could contradict other settings.
bool check_run(const Suite& suite, const SuiteRun& run, const std::filesystem::path& parent, const Launch& launch,
               std::vector<Mistake>& mistakes) {
  const auto collect = [&](std::size_t line, const std::string& who, auto part) {
    try {
      part();
    } catch (const NoRoom&) {  // too little memory becomes a row of the comparison
    } catch (const Error& error) {
      mistakes.push_back({line, who + on_one_line(error.what())});
    }
  };
  const std::size_t before = mistakes.size();
  if (run.outside) {
    check_outside(run, mistakes);
    return true;
  }
  collect(run.line, "", [&] {
    const Prepared alone = fresh(run.command);
    for (const Setting& setting : run.settings) {
      const auto line = static_cast<std::size_t>(std::atoll(setting.origin.substr(setting.origin.rfind(':') + 1).c_str()));
      if (setting.key == "config" || setting.key == "run-dir" || setting.key == "out" || setting.key == "log-level" ||
          setting.key == "launches")
        mistakes.push_back({line, fmt::format("{} cannot be set for a run: the suite sets it", setting.key)});
      if (std::ranges::count(run.settings, setting.key, &Setting::key) > 1)
        mistakes.push_back({run.line, fmt::format("{} is given twice, or is both fixed and varied", setting.key)});
      collect(line, "", [&] {
        Foreign read = behind(setting, alone->command->presets(), alone->command->foreign());
        for (WrongSetting& wrong : read.mistakes) alone->options.refuse(std::move(wrong));
        alone->options.report_mistakes();
      });
      collect(line, "", [&] {
        if (setting.key == "preset" || setting.key == "config") return;  // these name sources of settings
        for (const Setting& ours : alone->options.in_our_names({setting})) alone->options.take(ours);
        alone->options.report_mistakes();
      });
    }
  });
  const bool together = mistakes.size() == before;
  const int processes = run.processes(launch.size);
  if (processes > launch.size)
    mistakes.push_back({run.line, fmt::format("needs {} ranks, {} were started: {}", processes, launch.size,
                                              command_on(processes, "compare " + suite.file.string()))});
  if (const std::int64_t own = ranks_of_layout(run); run.simulated() && own > 0 && run.ranks > 0 && run.ranks != own)
    mistakes.push_back({run.line, fmt::format("{}: a simulated run has the ranks of its layout, {}, but ranks is {}",
                                              run.name, own, run.ranks)});
  if (!together) return false;
  collect(run.line, run.name + ": ", [&] {
    const auto made = prepare(run, parent, "", {.launcher = "compare", .rank = launch.rank, .size = processes});
    const Option* steps = made->options.find("train-iters");
    if (steps && std::atoll(steps->text.c_str()) <= suite.warm_up)
      mistakes.push_back({run.line, fmt::format("{}: train-iters {} leaves no step after a warm-up of {}", run.name,
                                                steps->text, suite.warm_up)});
  });
  return true;
}

}  // namespace

Prepared prepared_options(const SuiteRun& run) {
  Prepared made = fresh(run.command);
  apply(made->options, run.settings, made->command->presets(), made->command->foreign());
  return made;
}

Prepared prepare(const SuiteRun& run, const std::filesystem::path& folder, const std::string& name, const Launch& launch) {
  Prepared made = fresh(run.command);
  std::vector<Setting> settings = run.settings;
  if (made->options.find("run-dir"))
    settings.push_back({"run-dir", folder.string(), "compare"});
  else if (!name.empty())
    settings.push_back({"out", (folder / name / "run.h5").string(), "compare"});
  if (run.simulated() && run.ranks > 0 && made->options.find("ranks"))
    settings.push_back({"ranks", std::to_string(run.ranks), "compare"});
  apply(made->options, settings, made->command->presets(), made->command->foreign());
  made->command->check(launch);
  return made;
}

std::size_t check_runs(const Suite& suite, const std::filesystem::path& parent, const Launch& launch,
                       std::vector<Mistake>& mistakes) {
  std::size_t half_checked = 0;
  for (const SuiteRun& run : suite.runs) half_checked += !check_run(suite, run, parent, launch, mistakes);
  return half_checked;
}

std::vector<std::string> values_of_outside(const SuiteRun& run, const std::vector<std::string>& varied) {
  return each(varied, [&](const std::string& name) { return run.text_of(name); });
}

std::vector<std::vector<std::string>> varied_values(const Suite& suite, const Launch& launch) {
  std::vector<std::vector<std::string>> values;
  for (const SuiteRun& run : suite.runs) {
    if (run.outside) {
      values.push_back(values_of_outside(run, suite.varied));
      continue;
    }
    const Prepared made = prepared_options(run);
    auto& row = values.emplace_back();
    for (const std::string& name : suite.varied) {
      const Option* option = made->options.find(name);
      row.push_back(name == "ranks"
                        ? std::to_string(run.simulated() && run.ranks > 0 ? run.ranks : run.processes(launch.size))
                    : option ? option->text
                             : "");
    }
  }
  return values;
}

}  // namespace chorale::compare
