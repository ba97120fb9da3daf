// Sources of settings: the command line (CLI11), CHORALE_* variables, TOML and JSON files, presets. Each reader turns its
// source into settings: triples of key, text and origin. `resolve` applies them to a command's options, lowest precedence
// first.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "src/base/options.hpp"

namespace chorale {

// Unknown flags and words are mistakes, which `options` keeps for report_mistakes().
std::vector<Setting> from_command_line(Options& options, const std::vector<std::string>& arguments);

// CHORALE_RUN_DIR=x sets run-dir. `known` lists the options of all commands. A variable for another command's option is
// ignored; an unknown variable is a mistake.
std::vector<Setting> from_environment(Options& options, const std::vector<std::string>& known,
                                      const std::vector<std::string>& variables);

std::vector<Setting> read_config(const std::filesystem::path& file);               // .toml or .json, flat: key = value
std::vector<Setting> read_toml(const std::string& text, const std::string& name);  // `name`: the file name in the origins

// The contents of another program's config file, translated into our options.
struct Foreign {
  std::vector<Setting> settings;
  std::vector<std::string> notes = {};  // settings that have no effect here, one per line
  std::vector<WrongSetting> mistakes = {};
};
// Another program's config file: the option that names the file, and the function that reads it.
struct ForeignConfig {
  std::string option;
  Foreign (*read)(const std::filesystem::path&);
  bool below_preset = false;  // true: a preset overrides the file; false: the file overrides the preset
};

// The file's text. If it cannot be read, the error says to check the path given to `asker`.
std::string config_text(const std::filesystem::path& file, const std::string& asker);
std::size_t line_at(const std::string& text, std::size_t position);  // from 1

// The contents of the preset or of the other program's file that this setting names; nothing for any other setting. Throws
// a usage error if there is no such preset, or if the file is wrong.
Foreign behind(const Setting& setting, const std::vector<Preset>& presets, const std::vector<ForeignConfig>& foreign);

// Refuses paths among the settings that cannot be used: empty on the command line, a loop of links, too long, or not
// readable. A path that does not exist is no error here.
void refuse_unusable_paths(Options& options, const std::vector<Setting>& settings);

// Applies `settings`, lowest precedence first. The preset and other programs' files that they name are applied before them.
void apply(Options& options, std::vector<Setting> settings, const std::vector<Preset>& presets,
           const std::vector<ForeignConfig>& foreign = {});

// Collects settings from all sources and applies them. Other programs' config files rank below our config file: above the
// preset, or below it if `below_preset` is set.
void resolve(Options& options, const std::vector<std::string>& arguments, const std::vector<std::string>& variables,
             const std::vector<std::string>& known, const std::vector<Preset>& presets,
             const std::vector<ForeignConfig>& foreign = {});

}  // namespace chorale
