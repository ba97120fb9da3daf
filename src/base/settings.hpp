// Sources of settings: the command line (CLI11), CHORALE_* variables, TOML and JSON files, presets. Each reader turns its
// source into plain (key, text, origin); `resolve` applies them to a command's options in rising precedence.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "src/base/options.hpp"

namespace chorale {

std::vector<Setting> from_command_line(const Options& options, const std::vector<std::string>& arguments);

// CHORALE_RUN_DIR=x sets run-dir. A variable for another command's option (its name is in `known`) is ignored; an unknown
// one is a usage error.
std::vector<Setting> from_environment(const Options& options, const std::vector<std::string>& known,
                                      const std::vector<std::string>& variables);

std::vector<Setting> read_config(const std::filesystem::path& file);               // .toml or .json, flat: key = value
std::vector<Setting> read_toml(const std::string& text, const std::string& name);  // `name` goes into the origins

// Another program's config file, whose settings become ours: the option that names the file, and its reader.
struct Foreign {
  std::vector<Setting> settings;
  std::vector<std::string> notes;  // settings that have no effect here, one per line
};
struct ForeignConfig {
  std::string option;
  Foreign (*read)(const std::filesystem::path&);
  bool below_preset = false;  // else above the preset
};

std::string config_text(const std::filesystem::path& file, const std::string& asker);  // the file that option `asker` names
std::size_t line_at(const std::string& text, std::size_t position);                    // from 1

// Applies settings in rising precedence, on top of the preset and the foreign files that they name.
void apply(Options& options, std::vector<Setting> settings, const std::vector<Preset>& presets,
           const std::vector<ForeignConfig>& foreign = {});

// Collects settings from all sources and applies them. Foreign files rank between preset and config file, or below the
// preset.
void resolve(Options& options, const std::vector<std::string>& arguments, const std::vector<std::string>& variables,
             const std::vector<std::string>& known, const std::vector<Preset>& presets,
             const std::vector<ForeignConfig>& foreign = {});

}  // namespace chorale
