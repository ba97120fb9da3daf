#include "experiments/report/recorded_option.hpp"

#include <map>
#include <memory>

#include "experiments/common/command.hpp"

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

}  // namespace chorale::report
