#include "src/base/settings.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "src/base/error.hpp"
#include "src/base/text.hpp"

namespace chorale {
namespace {

constexpr std::string_view prefix = "CHORALE_";

// CLI11 returns the words that it does not know; the error suggests the nearest name.
void refuse_leftovers(const Options& options, const std::vector<std::string>& leftovers) {
  for (const std::string& word : leftovers) {
    if (word == "--") continue;
    if (word.starts_with("-")) {
      const std::string name = word.substr(0, word.find('='));
      const std::string near = nearest(canonical_key(name), options.names());
      usage_error(
          fmt::format("unknown flag {}", name), fmt::format("{} has no such flag (command line)", options.command()),
          (near.empty() ? "" : fmt::format("did you mean --{}? ", near)) + options.command() + " --help lists them all");
    }
    usage_error(fmt::format("\"{}\" was not expected", word),
                fmt::format("{} takes no more arguments (command line)", options.command()),
                options.command() + " --help shows how it is used");
  }
}

const Setting* last_of(const std::vector<Setting>& settings, const std::string& key) {
  const auto found = std::find_if(settings.rbegin(), settings.rend(), [&](const Setting& s) { return s.key == key; });
  return found == settings.rend() ? nullptr : &*found;
}

std::vector<Setting> from_preset(const std::string& name, const std::string& origin, const std::vector<Preset>& presets) {
  std::vector<std::string> names;
  for (const Preset& preset : presets) {
    names.push_back(preset.name);
    if (preset.name != name) continue;
    std::vector<Setting> settings;
    for (const auto& [key, text] : preset.values) settings.push_back({key, text, "preset " + name});
    return settings;
  }
  const std::string near = nearest(name, names);
  usage_error(fmt::format("unknown preset \"{}\"", name), fmt::format("preset = {} ({})", name, origin),
              (near.empty() ? "" : fmt::format("did you mean \"{}\"? ", near)) + "the presets are " + join(names, ", "));
}

}  // namespace

std::vector<Setting> from_command_line(const Options& options, const std::vector<std::string>& arguments) {
  CLI::App app;
  app.set_help_flag();  // we print our own help: it opens with an example
  app.allow_extras();
  std::deque<std::vector<std::string>> values;
  std::vector<std::pair<const Option*, CLI::Option*>> parsed;
  for (const Option& option : options.all()) {
    std::string names = option.positional ? option.name : "--" + option.name;
    for (const std::string& alias : option.aliases) names += "," + dashes(alias) + alias;
    auto& into = values.emplace_back();
    auto* cli = option.is_switch ? app.add_flag(names, into) : app.add_option(names, into);
    if (!option.is_switch && !option.positional) cli->expected(1)->allow_extra_args(false);
    cli->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    parsed.emplace_back(&option, cli);
  }
  std::vector<std::pair<const Word*, CLI::Option*>> words;
  for (const Word& word : options.foreign_words()) {
    auto& into = values.emplace_back();
    std::string names = "--" + word.name;
    if (word.name.find('-') != std::string::npos) names += ",--" + replace_all(word.name, '-', '_');
    auto* cli = word.is_switch() ? app.add_flag(names, into) : app.add_option(names, into);
    if (!word.is_switch()) cli->expected(0, -1);  // as many values as follow: 70 a 30 b
    words.emplace_back(&word, cli);
  }
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));  // CLI11 expects them in reverse
  } catch (const CLI::ParseError& error) {
    usage_error(error.what(), fmt::format("{} {} (command line)", options.command(), join(arguments, " ")),
                options.command() + " --help shows how it is used");
  }
  refuse_leftovers(options, app.remaining());

  std::vector<Setting> settings;
  for (const auto& [option, cli] : parsed) {
    if (cli->count() == 0) continue;
    const auto& all = cli->results();
    if (option->positional)
      for (const std::string& word : all)
        if (word.find('\n') != std::string::npos)
          usage_error("a word contains a line break", fmt::format("{} (command line)", word), "rename the file");
    const std::string text = option->positional ? join(all, "\n") : option->is_list ? join(all, ",") : all.back();
    settings.push_back({option->name, text, "command line", Source::command_line});
  }
  for (const auto& [word, cli] : words)
    if (cli->count() > 0) settings.push_back({word->name, join(cli->results(), " "), "command line", Source::command_line});
  return settings;
}

std::vector<Setting> from_environment(const Options& options, const std::vector<std::string>& known,
                                      const std::vector<std::string>& variables) {
  std::vector<Setting> settings;
  for (const std::string& variable : variables) {
    if (!variable.starts_with(prefix)) continue;
    const auto equals = variable.find('=');
    const std::string name = variable.substr(0, equals);
    const std::string key = canonical_key(name.substr(prefix.size()));
    if (options.find(key) || options.find_word(key)) {
      settings.push_back({key, variable.substr(equals + 1), name, Source::environment});
    } else if (!std::count(known.begin(), known.end(), key)) {
      std::string near = nearest(key, known);
      for (char& c : near) c = c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
      usage_error(fmt::format("unknown variable {}", name), fmt::format("{} (environment)", variable),
                  near.empty() ? fmt::format("unset {}: no command knows it", name)
                               : fmt::format("did you mean {}{}?", prefix, near));
    }
  }
  return settings;
}

Foreign behind(const Setting& setting, const std::vector<Preset>& presets, const std::vector<ForeignConfig>& foreign) {
  if (setting.key == "preset") return {from_preset(setting.text, setting.origin, presets), {}};
  for (const ForeignConfig& other : foreign)
    if (setting.key == other.option && !setting.text.empty()) return other.read(setting.text);
  return {};
}

void apply(Options& options, std::vector<Setting> settings, const std::vector<Preset>& presets,
           const std::vector<ForeignConfig>& foreign) {
  settings = options.in_our_names(settings);
  require_usable_paths(options, settings);
  for (const Option& option : options.all()) {
    const Setting *one = last_of(settings, option.name), *other = last_of(settings, option.replaced);
    if (one && other && !one->text.empty() && !other->text.empty())
      usage_error(fmt::format("{} and {} exclude each other", one->key, other->key),
                  fmt::format("{} is {} ({}), {} is {} ({})", one->key, one->text, one->origin, other->key, other->text,
                              other->origin),
                  "give one of the two");
  }
  std::vector<Setting> rising;
  const auto add = [&](const std::vector<Setting>& more) { rising.insert(rising.end(), more.begin(), more.end()); };
  const auto add_foreign = [&](bool below_preset) {
    for (const ForeignConfig& other : foreign)
      if (const Setting* file = last_of(settings, other.option); file && other.below_preset == below_preset) {
        Foreign read = behind(*file, presets, foreign);
        std::erase_if(read.settings, [&](const Setting& s) { return !options.find(s.key); });  // another command's option
        add(read.settings);
        for (std::string& line : read.notes) options.note(std::move(line));
      }
  };
  add_foreign(true);
  if (const Setting* preset = last_of(settings, "preset")) add(behind(*preset, presets, foreign).settings);
  add_foreign(false);
  add(settings);
  for (const Setting& setting : rising) options.set(setting);
  options.settle();
}

void resolve(Options& options, const std::vector<std::string>& arguments, const std::vector<std::string>& variables,
             const std::vector<std::string>& known, const std::vector<Preset>& presets,
             const std::vector<ForeignConfig>& foreign) {
  std::vector<Setting> given = from_environment(options, known, variables);
  for (Setting& setting : from_command_line(options, arguments)) given.push_back(std::move(setting));

  std::vector<Setting> rising;
  if (const Setting* config = last_of(given, "config")) rising = read_config(config->text);
  for (Setting& setting : rising) setting.source = Source::config;
  if (const Setting* inner = last_of(rising, "config"))
    usage_error("a config file cannot name another config file", fmt::format("config = {} ({})", inner->text, inner->origin),
                "copy the other file's lines into this one");
  std::erase_if(rising, [&](const Setting& in_file) {
    return std::any_of(given.begin(), given.end(), [&](const Setting& beside) {
      const Option* option = options.find(beside.key);
      return option && option->replaced == in_file.key && !in_file.key.empty();
    });
  });
  rising.insert(rising.end(), given.begin(), given.end());
  apply(options, std::move(rising), presets, foreign);
}

}  // namespace chorale
