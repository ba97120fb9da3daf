// Finds the option of a recorded setting. The option states what the setting changes (Effect) and what it is a part of
// (Whole). A record of another version can have settings that are no options of this program. For such a setting, any
// difference counts.
#pragma once
#include <map>
#include <string>

#include "src/base/options.hpp"

namespace chorale::report {

const Option* option_of(const std::string& command, const std::string& setting);  // null: this program has no such option
Effect effect_of(const std::string& command, const std::string& setting);         // unstated: there is no such option
bool is_part_of(Whole whole, const std::string& command, const std::string& setting);
bool may_change_losses(const std::string& command, const std::string& setting);
bool tells_runs_apart(const std::string& command, const std::string& setting);  // false for folders, log levels and the like

// Adds the settings that are at their default, except empty ones and those of the layout and of the output. The record of a
// launch has only the other settings.
std::map<std::string, std::string> with_defaults(std::map<std::string, std::string> settings, const std::string& command);

}  // namespace chorale::report
