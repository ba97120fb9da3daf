// Sources of settings: the command line (CLI11), CHORALE_* variables, TOML and JSON files, presets. Each reader converts its
// source into settings, which are triples of key, text and origin. `resolve` applies the settings to a command's options,
// lowest precedence first.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "src/base/options.hpp"

namespace chorale {

// Unknown flags and arguments are mistakes, which are stored in `options` for report_mistakes().
std::vector<Setting> from_command_line(Options& options, const std::vector<std::string>& arguments);

// CHORALE_RUN_DIR=x sets run-dir. `known` lists the options of all commands. A variable for an option of another command is
// ignored; an unknown variable is a mistake.
std::vector<Setting> from_environment(Options& options, const std::vector<std::string>& known,
                                      const std::vector<std::string>& variables);

std::vector<Setting> read_config(const std::filesystem::path& file);               // .toml or .json, flat: key = value
std::vector<Setting> read_toml(const std::string& text, const std::string& name);  // `name`: the file name that error
                                                                                   // messages show as the origin of a
                                                                                   // setting

// The contents of another program's config file, translated into Chorale's options.
struct Foreign {
  std::vector<Setting> settings;
  std::vector<std::string> notes = {};  // settings that have no effect in Chorale, one per line
  std::vector<WrongSetting> mistakes = {};
};
// The config file of another program: the option that names the file, and the function that reads the file.
struct ForeignConfig {
  std::string option;
  Foreign (*read)(const std::filesystem::path&);
  bool below_preset = false;  // true: a preset overrides the file; false: the file overrides the preset
};

// Returns the text of the file. If the file cannot be read, the error tells the user to check the path given to `asker`.
std::string config_text(const std::filesystem::path& file, const std::string& asker);
std::size_t line_at(const std::string& text, std::size_t position);  // line numbers start at 1

// Returns the contents of the preset, or of the other program's config file, that this setting names. Returns nothing for
// any other setting. Throws a usage error if there is no such preset, or if the file is invalid.
Foreign behind(const Setting& setting, const std::vector<Preset>& presets, const std::vector<ForeignConfig>& foreign);

// Throws if a setting's path cannot be used. A path is unusable if it is empty on the command line, is too long, contains a
// loop of symbolic links, or cannot be read. A path that does not exist is accepted.
void refuse_unusable_paths(Options& options, const std::vector<Setting>& settings);

// Applies `settings`, lowest precedence first. First applies the preset and other programs' config files that the settings
// name.
void apply(Options& options, std::vector<Setting> settings, const std::vector<Preset>& presets,
           const std::vector<ForeignConfig>& foreign = {});

// Collects settings from all sources and applies these settings. Config files of other programs rank below Chorale's config
// file. Config files of other programs rank above the preset, or below the preset if `below_preset` is set.
void resolve(Options& options, const std::vector<std::string>& arguments, const std::vector<std::string>& variables,
             const std::vector<std::string>& known, const std::vector<Preset>& presets,
             const std::vector<ForeignConfig>& foreign = {});

}  // namespace chorale
