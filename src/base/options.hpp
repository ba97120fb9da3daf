// The options of one command. The command declares each option once and binds it to one of the command's fields:
//
//   options.add("ranks", ranks_, "ranks to plan for").range(1, 64);
//
// The same name then works in every source of settings. A later source overrides an earlier one:
//
//   default < preset < another program's file < config file      < environment       < command line
//                                                 ranks = 4          CHORALE_RANKS=4     --ranks 4
//
// Every value records its origin. An unknown name is an error that says where the name was given and suggests the nearest
// name. A value that would have no effect is refused: `only_with` and `only_where` declare when an option has an effect. All
// mistakes in the settings are reported together. A single mistake is reported in three lines, and several mistakes in one
// line each.
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <chorale/named.hpp>
#include <chorale/relative.hpp>
#include "src/base/flag_synonyms.hpp"

namespace chorale {

// Sources of settings in ascending precedence. `other`: defaults, presets and suites.
enum class Source { other, foreign, config, environment, command_line };

struct Setting {
  std::string key;  // canonical: lower case, words joined by hyphens
  std::string text;
  std::string origin;  // "default", "preset tiny", "run.toml:3", "CHORALE_RANKS", "command line"
  Source source = Source::other;
};

// A mistake in the settings: the three lines of its error, and the line that is used in a list of several mistakes.
struct WrongSetting {
  std::string what, numbers, fix, line;
};

struct Preset {
  std::string name;
  std::string about;
  std::vector<std::pair<std::string, std::string>> values;
};

// The part of a command's results that depends on the value of an option. Reports use it to decide which runs to compare.
enum class Effect : std::uint8_t {
  unstated,  // the results of the command are not compared, or any difference counts
  learning,  // the losses of a run, but not its speed: the learning rate
  work,      // the losses, and the work of a step: the model, the batch, the element type
  speed,     // only speed and memory; losses can differ by rounding
  output     // only what is printed, kept or recorded
};

// A group of options that belong together, such as all options of the layout. A comparison treats a group as one setting.
enum class Whole : std::uint8_t {
  none,
  shape,   // of the model; labels name it by its layers and its width
  layout,  // labels name it by the layout string
  scale    // the batch and the resources, which vary with the number of ranks
};

// A condition that must hold for an option to have an effect.
struct Condition {
  std::function<std::string()> why_not;  // "" if the condition holds; otherwise the reason: "family = gpt2 (default)"
  std::string needs;                     // the condition in words: "family llama"
};

class Option {
 public:
  Option& alias(std::string name) {  // "world-size"; "n" means -n
    aliases.push_back(std::move(name));
    return *this;
  }
  Option& one_of(std::vector<std::string> names) {
    choices = std::move(names);
    return *this;
  }
  Option& range(double low, double high) {
    lowest = low;
    highest = high;
    return *this;
  }
  // This option and `other` are mutually exclusive. If this option is given on the command line or in the environment, it
  // replaces a value of `other` from a config file. In all other cases, giving both is an error.
  Option& instead_of(std::string other) {
    replaced = std::move(other);
    return *this;
  }
  // The placeholder in the help, such as FILE or N.
  Option& words(std::string placeholder) {
    metavar = std::move(placeholder);
    return *this;
  }

  // Also accepts `theirs`, another program's name for Chorale's choice `ours`.
  Option& also(std::string theirs, std::string ours) {
    synonyms.emplace_back(theirs, ours);
    return *this;
  }
  Option& suggest(std::vector<std::string> names) {
    suggestions = std::move(names);
    return *this;
  }
  Option& changes(Effect what) {
    effect = what;
    return *this;
  }
  Option& part_of(Whole larger) {
    whole = larger;
    return *this;
  }
  // only_with() declares that this option has an effect only if the option `other`, of the same command, has one of
  // `values`: enumerators, names or switches (bool). A value that `other` does not take is an error of the declaration.
  // only_where() declares that this option has an effect only if `why_not` returns "". `needs` is the condition in words.
  template <class... Values>
  Option& only_with(const Option& other, const Values&... values) {
    return only_with_texts(other, {text_of(values)...});
  }
  Option& only_where(const std::string& needs, std::function<std::string()> why_not);

  std::string name;
  std::string about;
  std::string section;  // heading in the help
  std::string metavar;
  std::string text;     // the current value, for records and help
  std::string initial;  // the default
  std::string origin = "default";
  Source source = Source::other;
  std::string replaced;  // the option that this option excludes (instead_of)
  std::vector<std::string> aliases;
  std::vector<std::string> choices;                           // the allowed values or list elements; if there are none, any
                                                              // value is allowed. If yes and no are choices, words such as
                                                              // true, on and 1 are accepted for them
  std::vector<std::pair<std::string, std::string>> synonyms;  // (another program's name, Chorale's choice)
  std::vector<std::string> suggestions;  // for shell completion, if values other than the choices are allowed
  std::vector<Condition> conditions;     // all conditions must hold for the option to have an effect
  double lowest = 0, highest = -1;       // no limits if lowest > highest
  bool positional = false, is_list = false, is_switch = false, is_number = false, is_source = false;
  bool passed_on = false;  // this option belongs to another command; its value is kept as text and checked by that command
  // Sets the field, and sets the option's `text` to the canonical form of the value (".5" → "0.5"). Returns "", or a
  // description of the expected form if the argument is invalid.
  using Assign = std::function<std::string(const std::string&, Option&)>;
  Assign assign;
  Effect effect = Effect::unstated;
  Whole whole = Whole::none;

 private:
  template <Named Enum>
  static std::string text_of(Enum value) {
    return name_of(value);
  }
  static std::string text_of(bool on) { return on ? "true" : "false"; }
  static std::string text_of(const char* value) { return value; }
  Option& only_with_texts(const Option& other, const std::vector<std::string>& values);
};

class Options {
 public:
  explicit Options(std::string command) : command_(std::move(command)) {}
  Options(const Options&) = delete;  // because options are bound to a command's fields
  Options& operator=(const Options&) = delete;

  // Options added after this call appear under this heading in the help, and have this effect unless they state another.
  void section(const std::string& heading, Effect effect = Effect::unstated) {
    section_ = heading;
    effect_ = effect;
  }
  Option& add(const std::string& name, std::string& field, const std::string& about);
  // The option of a field that is initially false is a switch: --name sets the field to true. The option of a field that is
  // initially true takes a value: --name no.
  Option& add(const std::string& name, bool& field, const std::string& about);
  // A switch that sets a field to false: --no-master-weights.
  Option& add_no(const std::string& name, bool& field, const std::string& about);
  Option& add(const std::string& name, std::int64_t& field, const std::string& about);
  Option& add(const std::string& name, std::uint64_t& field, const std::string& about);
  Option& add(const std::string& name, double& field, const std::string& about);
  // `none` is the word that stands for the value 0, such as "dropless".
  Option& add(const std::string& name, const std::string& none, double& field, const std::string& about);
  // `none` is the word that stands for the absence of a value: "auto", or a number such as "0" that would be meaningless as
  // a value.
  Option& add(const std::string& name, const std::string& none, std::optional<std::int64_t>& field,
              const std::string& about);
  // Takes the name of an enumerator (named.hpp). one_of() may restrict the names further.
  template <Named Enum>
  Option& add(const std::string& name, Enum& field, const std::string& about) {
    return add_choice(name, all_names<Enum>(), name_of(field), about,
                      [&field](const std::string& word) { field = named<Enum>(word); });
  }
  template <Named Enum>
  Option& add(const std::string& name, const std::string& none, std::optional<Enum>& field, const std::string& about) {
    std::vector<std::string> names = all_names<Enum>();
    names.insert(names.begin(), none);
    return add_choice(
        name, std::move(names), field ? name_of(*field) : none, about,
        [&field, none](const std::string& word) { field = word == none ? std::optional<Enum>() : named<Enum>(word); });
  }
  // Takes the name of a table row. A null `field` means "auto".
  template <class Row>
  Option& add(const std::string& name, const std::vector<Row>& table, const Row*& field, const std::string& about) {
    std::vector<std::string> names;
    if (!field) names.emplace_back("auto");
    for (const Row& row : table) names.emplace_back(row.name);
    const std::string first = field ? field->name : names.front();
    return add_choice(name, std::move(names), first, about, [&field, &table](const std::string& word) {
      field = nullptr;
      for (const Row& row : table)
        if (word == row.name) field = &row;
    });
  }
  Option& add(const std::string& name, std::vector<std::string>& field, const std::string& about);
  // Takes sizes as people write them: 8, 64K, 1.5M, 2G (powers of 1024).
  Option& add_bytes(const std::string& name, std::int64_t& field, const std::string& about);
  // As in add(), `none` is the word that stands for the absence of a value.
  Option& add_bytes(const std::string& name, const std::string& none, std::optional<std::int64_t>& field,
                    const std::string& about);
  Option& add_seconds(const std::string& name, double& field, const std::string& about);  // 90, 90s, 1.5m, 2h
  Option& add_relative(const std::string& name, const std::string& whole, Relative& field, const std::string& about);
  // An option that names a source of settings, such as --config. `resolve` reads the source and merges its settings into the
  // other options.
  Option& add(const std::string& name, const std::string& about);
  Option& add_positional(const std::string& name, std::vector<std::string>& field, const std::string& about);

  // The options declared by `declare` have an effect only if `why_not` returns "" (Option::only_where).
  void only_where(const std::string& needs, const std::function<std::string()>& why_not,
                  const std::function<void()>& declare);

  // Also accepts the options of another command, to pass them on to that command. Skips options that this command itself
  // has, and options in `except`. The help does not list options that are passed on. An option that is passed on appears in
  // records only if the user gave it.
  void pass_on(const Options& other, const std::vector<std::string>& except);
  std::vector<Setting> given_to_pass_on() const;

  // Adds another program's option names. Skips a name if this command lacks the corresponding option.
  void add_words(const std::vector<Word>& words);

  const std::string& command() const { return command_; }
  const std::deque<Option>& all() const { return options_; }
  const std::vector<Word>& foreign_words() const { return foreign_words_; }
  std::vector<std::string> names() const;               // canonical names, aliases and words
  const Option* find(const std::string& key) const;     // finds an option by name or alias
  const Option& option(const std::string& name) const;  // an option that was declared before
  const Word* find_word(const std::string& key) const;
  const std::string& origin(const std::string& name) const;

  // Translates settings that use another program's option names into settings of Chorale's options. Such a name can require
  // values of other options, which settle() checks later.
  std::vector<Setting> in_our_names(const std::vector<Setting>& settings);
  // Sets one value. Throws a usage error if the name is unknown or the value does not fit.
  void set(const Setting& setting);
  // Does the same as set(), but collects mistakes until report_mistakes() throws one usage error for all of them.
  void take(const Setting& setting);
  void refuse(WrongSetting wrong) { mistakes_.push_back(std::move(wrong)); }
  void report_mistakes();
  // Called once after all settings are taken. Throws a usage error for the mistakes found so far. If there are no mistakes,
  // throws a usage error for settings that have no effect. (If there is a mistake, it might be the reason why a setting has
  // no effect.) A setting from another program's file that has no effect is reset, with a note.
  void settle();
  // Records a mistake about an unknown name, and calls the name a flag if it starts with a dash. If another program uses the
  // name, suggests the corresponding option; otherwise suggests the nearest name.
  void refuse_unknown(const std::string& name, const std::string& origin);
  std::string why_idle(const Option& option) const;  // returns why the option has no effect, or "" if it has an effect
  // Remarks on the settings for the user, one per line.
  void note(std::string line) { notes_.push_back(std::move(line)); }
  const std::vector<std::string>& notes() const { return notes_; }

  // Returns the settings as command-line arguments, except options named in `without`. Skips defaults and values from a
  // preset or stored model.
  std::vector<std::string> words(const std::vector<std::string>& without = {}) const;

  std::string help_text() const;
  std::string toml() const;     // returns a config file that reproduces these values; options without effect are commented
                                // out
  std::string origins() const;  // returns "name = origin", one per line

 private:
  struct Expectation {
    Setting setting;  // one of Chorale's options and the value that it must have, or must not have
    Word word;
  };
  Option& insert(Option option, Option::Assign assign);
  Option& add_switch(const std::string& name, const std::string& about, std::function<void(bool)> set);
  // Adds an option whose value is one of `names`. Calls `set` with the chosen name.
  Option& add_choice(const std::string& name, std::vector<std::string> names, const std::string& first,
                     const std::string& about, std::function<void(const std::string&)> set);
  void refuse_unexpected();
  std::string command_, section_ = "options";
  Effect effect_ = Effect::unstated;
  std::deque<Option> options_;  // a deque: references returned by add stay valid
  std::vector<Word> foreign_words_;
  std::vector<Expectation> expected_;
  std::vector<WrongSetting> mistakes_;
  std::vector<std::string> notes_;
};

// Returns the two parts of the option's help text: "--lr X" and "highest learning rate (default 0.001)".
std::pair<std::string, std::string> described(const Option& option);
inline constexpr std::string_view idle_mark = "# no effect: ";  // prefix of an option without effect in the text from toml()
inline std::string dashes(const std::string& name) { return name.size() == 1 ? "-" : "--"; }
std::string quoted_toml(const std::string& text);
std::string canonical_key(std::string name);  // RUN_DIR, run_dir, --run-dir → run-dir

}  // namespace chorale
