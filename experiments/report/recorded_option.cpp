#include "experiments/report/recorded_option.hpp"

#include <memory>

#include "experiments/common/command.hpp"
#include "src/base/error.hpp"
#include "src/base/settings.hpp"

namespace chorale::report {
namespace {

const std::map<std::string, std::unique_ptr<const DeclaredCommand>>& declared_commands() {
  static const auto all = [] {
    std::map<std::string, std::unique_ptr<const DeclaredCommand>> declared;
    for (const CommandRow& row : all_commands()) declared[row.name] = std::make_unique<const DeclaredCommand>(row);
    return declared;
  }();
  return all;
}

}  // namespace

const Option* option_of(const std::string& command, const std::string& setting) {
  const auto declared = declared_commands().find(command);
  return declared == declared_commands().end() ? nullptr : declared->second->options.find(setting);
}

Effect effect_of(const std::string& command, const std::string& setting) {
  const Option* const option = option_of(command, setting);
  return option ? option->effect : Effect::unstated;
}

bool is_part_of(Whole whole, const std::string& command, const std::string& setting) {
  const Option* const option = option_of(command, setting);
  return option && option->whole == whole;
}

bool may_change_losses(const std::string& command, const std::string& setting) {
  const Effect effect = effect_of(command, setting);
  return effect != Effect::speed && effect != Effect::output;
}

bool tells_runs_apart(const std::string& command, const std::string& setting) {
  return effect_of(command, setting) != Effect::output;
}

std::map<std::string, std::string> with_defaults(std::map<std::string, std::string> settings, const std::string& command) {
  DeclaredCommand declared(find_command(command));
  for (const auto& [key, text] : settings) {
    try {
      declared.options.set({key, text, "the record"});
    } catch (const Error&) {  // a setting of another version
      continue;
    }
  }
  for (const Setting& setting : read_toml(declared.options.toml(), "the defaults")) {
    const Option& option = declared.options.option(setting.key);
    const bool is_known = option.whole != Whole::layout && option.effect != Effect::output && !setting.text.empty() &&
                          setting.key != "snapshot-interval";  // a launch chooses it
    if (is_known) settings.emplace(setting.key, setting.text);
  }
  return settings;
}

}  // namespace chorale::report
