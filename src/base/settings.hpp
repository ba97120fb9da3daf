// Sources of settings: the command line (CLI11), CHORALE_* variables, TOML and JSON files, presets. Each reader turns its
// source into plain (key, text, origin); `resolve` applies them to a command's options in rising precedence.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "src/base/options.hpp"

namespace chorale {

std::vector<Setting> from_command_line(const Options& options, const std::vector<std::string>& arguments);

// CHORALE_RUN_DIR=x sets run-dir. `known` lists the options of all commands. A variable for another command's option is
// ignored; an unknown variable is a usage error.
std::vector<Setting> from_environment(const Options& options, const std::vector<std::string>& known,
                                      const std::vector<std::string>& variables);

std::vector<Setting> read_config(const std::filesystem::path& file);               // .toml or .json, flat: key = value
std::vector<Setting> read_toml(const std::string& text, const std::string& name);  // `name` goes into the origins

// The contents of another program's config file, translated into our options.
struct Foreign {
  std::vector<Setting> settings;
  std::vector<std::string> notes;  // settings that have no effect here, one per line
};
// Another program's config file: the option that names the file, and the function that reads it.
struct ForeignConfig {
  std::string option;
  Foreign (*read)(const std::filesystem::path&);
  bool below_preset = false;  // true: a preset overrides the file; false: the file overrides the preset
};

std::string config_text(const std::filesystem::path& file, const std::string& asker);  // the file that option `asker` names
std::size_t line_at(const std::string& text, std::size_t position);                    // from 1

// Applies settings in rising precedence, on top of the preset and of other programs' files that the settings name.
void apply(Options& options, std::vector<Setting> settings, const std::vector<Preset>& presets,
           const std::vector<ForeignConfig>& foreign = {});

// Collects settings from all sources and applies them. Other programs' config files rank between preset and our config
// file, or below the preset (below_preset).
void resolve(Options& options, const std::vector<std::string>& arguments, const std::vector<std::string>& variables,
             const std::vector<std::string>& known, const std::vector<Preset>& presets,
             const std::vector<ForeignConfig>& foreign = {});

}  // namespace chorale
