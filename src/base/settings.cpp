#include "src/base/settings.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <set>

#include "src/base/error.hpp"
#include "src/base/text.hpp"

namespace chorale {
namespace {

constexpr std::string_view prefix = "CHORALE_";

// Returns the option that the user probably meant by a word without dashes: `train tiny`, `train lr=1e-3`, `train bf16`,
// `train my.toml`.
std::string flag_with(const std::string& word, const Options& options) {
  const std::string ending = std::filesystem::path(word).extension().string();
  if (ending == ".toml" || ending == ".json") return "--config " + word;
  if (options.find("prompt")) return fmt::format("--prompt \"{}\"", word);
  if (const std::size_t equals = word.find('='); equals != std::string::npos)
    if (const Option* const option = options.find(canonical_key(word.substr(0, equals))))
      return fmt::format("--{} {}", option->name, word.substr(equals + 1));
  const std::size_t letters = word.find_first_of("0123456789");  // for example, dp2.tp2 begins with the name of an option
  if (letters != std::string::npos && options.find("layout") && options.find(word.substr(0, letters)))
    return "--layout " + word;
  if (letters != std::string::npos && letters > 0 && options.find("layouts")) return "--layouts " + word;
  for (const Option& option : options.all())
    if (!option.positional && (std::ranges::count(option.choices, word) || std::ranges::count(option.suggestions, word)))
      return fmt::format("--{} {}", option.name, word);
  return "";
}

// Returns "--preset" for "—preset", because text editors replace two hyphens with one long dash.
std::string with_two_dashes(const std::string& word) {
  for (const char* const dash : {"—", "–"})
    if (word.starts_with(dash)) return "--" + word.substr(std::string_view(dash).size());
  return "";
}

void refuse_word(Options& options, const std::string& word) {
  const std::string dashes = with_two_dashes(word), flag = dashes.empty() ? flag_with(word, options) : dashes;
  const std::string instead = flag.empty() ? "" : fmt::format("did you mean {}? ", flag);
  options.refuse({fmt::format("\"{}\" was not expected", word),
                  fmt::format("{} takes no more arguments (command line)", options.command()),
                  instead + options.command() + " --help shows how it is used",
                  fmt::format("\"{}\" was not expected{}{}", word, instead.empty() ? "" : ": ", trim(instead))});
}

// CLI11 returns the arguments that it does not recognize. An argument that follows an unknown flag is probably the value of
// that flag.
void refuse_leftovers(Options& options, const std::vector<std::string>& leftovers) {
  bool after_flag = false;
  for (const std::string& word : leftovers) {
    if (word == "--") continue;
    const bool flag = word.starts_with("-");
    if (flag) options.refuse_unknown(word.substr(0, word.find('=')), "command line");
    if (!flag && !after_flag) refuse_word(options, word);
    after_flag = (flag || !with_two_dashes(word).empty()) && word.find('=') == std::string::npos;
  }
}

const Setting* last_of(const std::vector<Setting>& settings, const std::string& key) {
  const auto found = std::find_if(settings.rbegin(), settings.rend(), [&](const Setting& s) { return s.key == key; });
  return found == settings.rend() ? nullptr : &*found;
}

Foreign from_preset(const std::string& name, const std::string& origin, const std::vector<Preset>& presets) {
  std::vector<std::string> names;
  for (const Preset& preset : presets) {
    names.push_back(preset.name);
    if (preset.name != name) continue;
    Foreign read;
    for (const auto& [key, text] : preset.values) read.settings.push_back({key, text, "preset " + name});
    return read;
  }
  const std::string near = nearest(name, names), what = fmt::format("unknown preset \"{}\"", name),
                    found = fmt::format("preset = {} ({})", name, origin),
                    fix = (near.empty() ? "" : fmt::format("did you mean \"{}\"? ", near)) + "the presets are " +
                          join(names, ", ");
  return {{}, {}, {{what, found, fix, fmt::format("{}: {}", what, fix)}}};
}

}  // namespace

std::vector<Setting> from_command_line(Options& options, const std::vector<std::string>& arguments) {
  CLI::App app;
  app.set_help_flag();  // Chorale prints its own help, which starts with an example
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
    if (!word.is_switch()) cli->expected(0, -1);  // takes all values that follow, as in "70 a 30 b"
    words.emplace_back(&word, cli);
  }
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));  // CLI11 expects the arguments in reverse
                                                                                // order
  } catch (const CLI::ArgumentMismatch& error) {
    const std::string what = error.what(), flag = what.substr(0, what.find(':'));  // "--lr: 1 required TEXT missing"
    const Option* const option = options.find(canonical_key(flag));
    if (!option) throw;
    const auto [head, about] = described(*option);
    usage_error(fmt::format("{} lacks its value", flag),
                fmt::format("{} {} (command line)", options.command(), join(arguments, " ")),
                fmt::format("give it: {}: {}", head, about));
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

std::vector<Setting> from_environment(Options& options, const std::vector<std::string>& known,
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
      const std::string fix = near.empty() ? fmt::format("unset {}: no command knows it", name)
                                           : fmt::format("did you mean {}{}?", prefix, near);
      options.refuse({fmt::format("unknown variable {}", name), fmt::format("{} (environment)", variable), fix,
                      fmt::format("unknown variable {}: {}", name, fix)});
    }
  }
  return settings;
}

Foreign behind(const Setting& setting, const std::vector<Preset>& presets, const std::vector<ForeignConfig>& foreign) {
  if (setting.key == "preset") return from_preset(setting.text, setting.origin, presets);
  for (const ForeignConfig& other : foreign)
    if (setting.key == other.option && !setting.text.empty()) return other.read(setting.text);
  return {};
}

void apply(Options& options, std::vector<Setting> settings, const std::vector<Preset>& presets,
           const std::vector<ForeignConfig>& foreign) {
  settings = options.in_our_names(settings);
  refuse_unusable_paths(options, settings);
  std::set<std::string> excluded;  // files of these options are not read, because it is unclear which of the two options is
                                   // meant
  for (const Option& option : options.all()) {
    const Setting *one = last_of(settings, option.name), *other = last_of(settings, option.replaced);
    if (one && other && !one->text.empty() && !other->text.empty()) {
      const std::string what = fmt::format("{} and {} exclude each other", one->key, other->key),
                        numbers = fmt::format("{} is {} ({}), {} is {} ({})", one->key, one->text, one->origin, other->key,
                                              other->text, other->origin);
      options.refuse({what, numbers, "give one of the two", fmt::format("{}: {}", what, numbers)});
      excluded.insert({option.name, option.replaced});
    }
  }
  std::vector<Setting> rising;
  const auto add = [&](const std::vector<Setting>& more) { rising.insert(rising.end(), more.begin(), more.end()); };
  const auto add_behind = [&](const Setting* setting) {
    if (!setting || excluded.contains(setting->key)) return;
    Foreign read = behind(*setting, presets, foreign);
    std::erase_if(read.settings, [&](const Setting& s) { return !options.find(s.key); });  // options of a different command
    add(read.settings);
    for (std::string& line : read.notes) options.note(std::move(line));
    for (WrongSetting& wrong : read.mistakes) options.refuse(std::move(wrong));
  };
  const auto add_foreign = [&](bool below_preset) {
    for (const ForeignConfig& other : foreign)
      if (other.below_preset == below_preset) add_behind(last_of(settings, other.option));
  };
  add_foreign(true);
  add_behind(last_of(settings, "preset"));
  add_foreign(false);
  add(settings);
  for (const Setting& setting : rising) options.take(setting);
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
