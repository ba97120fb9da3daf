// Where settings come from: the command line (CLI11), CHORALE_* variables, TOML and JSON files, presets. Each reader
// turns its source into plain (key, text, origin); `resolve` applies them to a command's options in rising precedence.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "src/base/options.hpp"

namespace chorale {

std::vector<Setting> from_command_line(const Options& options, const std::vector<std::string>& arguments);

// CHORALE_RUN_DIR=x sets run-dir. A variable that belongs to another command (its name is in `known`) is left alone; one
// that belongs to none is a usage error.
std::vector<Setting> from_environment(const Options& options, const std::vector<std::string>& known,
                                      const std::vector<std::string>& variables);

std::vector<Setting> read_config(const std::filesystem::path& file);               // .toml or .json, flat: key = value
std::vector<Setting> read_toml(const std::string& text, const std::string& name);  // the name is that of the origins

// A file that is no config file of ours and says what our options shall be: the option that names it, and its reader.
struct Foreign {
  std::vector<Setting> settings;
  std::vector<std::string> notes;  // what of it has no effect here, a line each
};
struct ForeignConfig {
  std::string option;
  Foreign (*read)(const std::filesystem::path&);
  bool below_preset = false;  // else above it
};

std::string config_text(const std::filesystem::path& file, const std::string& asker);  // the file that "--option" names
std::size_t line_at(const std::string& text, std::size_t position);                    // from 1

// Settings in rising precedence, after what the preset and the foreign files that they name say.
void apply(Options& options, std::vector<Setting> settings, const std::vector<Preset>& presets,
           const std::vector<ForeignConfig>& foreign = {});

// From everywhere: foreign files stand between preset and config file, or below the preset.
void resolve(Options& options, const std::vector<std::string>& arguments, const std::vector<std::string>& variables,
             const std::vector<std::string>& known, const std::vector<Preset>& presets,
             const std::vector<ForeignConfig>& foreign = {});

}  // namespace chorale
