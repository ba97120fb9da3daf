// Options of one command. A command declares each once, as a reference to a field of its own:
//
//   options.add("ranks", ranks_, "ranks to plan for").range(1, 64);
//
// and the same name then works everywhere, the later winning over the earlier:
//
//   default < preset < another program's file < config file (ranks = 4) < environment (CHORALE_RANKS=4) < command line (--ranks 4)
//
// The origin of every value is kept. An unknown name is an error that says where it stands and what was probably meant. A value that is
// asked for and would change nothing is refused: `only_with` and `only_where` declare where an option has an effect.
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/base/words.hpp"

namespace chorale {

// Sources of settings in rising precedence. `other`: defaults, presets, suites.
enum class Source { other, foreign, config, environment, command_line };

struct Setting {
  std::string key;  // canonical: lower case, words joined by hyphens
  std::string text;
  std::string origin;  // "default", "preset tiny", "run.toml:3", "CHORALE_RANKS", "command line"
  Source source = Source::other;
};

struct Preset {
  std::string name;
  std::string about;
  std::vector<std::pair<std::string, std::string>> values;
};

class Options;

// Says why an option has no effect as things are, "family = gpt2 (default)", or nothing where it has one.
struct Condition {
  std::function<std::string(const Options&)> why_not;
  std::string needs;  // "family llama"
};

class Option {
 public:
  Option& alias(std::string name) { return aliases.push_back(std::move(name)), *this; }  // "world-size", or a letter: -n
  Option& one_of(std::vector<std::string> names) { return choices = std::move(names), *this; }
  Option& range(double low, double high) { return lowest = low, highest = high, *this; }
  // The two exclude each other; what is given beside a config file replaces the other one in it.
  Option& instead_of(std::string other) { return replaced = std::move(other), *this; }
  Option& words(std::string placeholder) { return metavar = std::move(placeholder), *this; }  // FILE, N, … in the help

  Option& also(std::string theirs, std::string ours) { return synonyms.emplace_back(theirs, ours), *this; }
  Option& suggest(std::vector<std::string> names) { return suggestions = std::move(names), *this; }
  // It has an effect only where another option has one of these values, or where `why_not` finds nothing.
  Option& only_with(const std::string& other, const std::vector<std::string>& values);
  Option& only_where(const std::string& needs, std::function<std::string()> why_not);

  std::string name;
  std::string about;
  std::string section;  // of the help
  std::string metavar;
  std::string text;     // the value as it stands, for records and help
  std::string initial;  // and as it was declared
  std::string origin = "default";
  Source source = Source::other;
  std::string replaced;  // another option
  std::vector<std::string> aliases;
  std::vector<std::string> choices;                           // of each element, when the value is a list
  std::vector<std::pair<std::string, std::string>> synonyms;  // another program's words for choices
  std::vector<std::string> suggestions;                       // what a shell offers where more than choices is taken
  std::vector<Condition> conditions;                          // all must hold, or it has no effect
  double lowest = 0, highest = -1;                            // no limits while lowest > highest
  bool positional = false, is_list = false, is_switch = false, is_number = false, is_source = false;
  // Sets the field, and `text` to its canonical form (".5" → "0.5"); returns what was expected when it cannot.
  std::function<std::string(const std::string&)> assign;
};

// A share of another value, or a value by itself: "0.1*lr" or "1e-4".
struct Relative {
  double value = 0;
  bool relative = false;
  double of(double whole) const { return relative ? value * whole : value; }
};

class Options {
 public:
  explicit Options(std::string command) : command_(std::move(command)) {}
  Options(const Options&) = delete;  // options point into it
  Options& operator=(const Options&) = delete;

  // What is added from here on stands under this heading of the help.
  void section(const std::string& heading) { section_ = heading; }
  Option& add(const std::string& name, std::string& field, const std::string& about);
  Option& add(const std::string& name, bool& field, const std::string& about);
  Option& add(const std::string& name, std::int64_t& field, const std::string& about);
  Option& add(const std::string& name, double& field, const std::string& about);
  Option& add(const std::string& name, std::vector<std::string>& field, const std::string& about);
  // Of any suffix that people give sizes: 8, 64K, 1.5M, 2G, powers of 1024.
  Option& add_bytes(const std::string& name, std::int64_t& field, const std::string& about);
  Option& add_bytes(const std::string& name, std::optional<std::int64_t>& field, const std::string& about);  // none: auto
  Option& add_seconds(const std::string& name, double& field, const std::string& about);  // 90, 90s, 1.5m, 2h
  Option& add_relative(const std::string& name, const std::string& whole, Relative& field, const std::string& about);
  // A source of settings, which `resolve` reads by name; what it says is folded into the others.
  Option& add(const std::string& name, const std::string& about);
  Option& add_positional(const std::string& name, std::vector<std::string>& field, const std::string& about);

  // Names of another program's; those whose option this command does not have are left out.
  void add_words(const std::vector<Word>& words);

  const std::string& command() const { return command_; }
  const std::deque<Option>& all() const { return options_; }
  const std::vector<Word>& foreign_words() const { return foreign_words_; }
  std::vector<std::string> names() const;            // canonical names, aliases and words
  const Option* find(const std::string& key) const;  // by name or alias
  const Word* find_word(const std::string& key) const;
  const std::string& origin(const std::string& name) const;

  // Settings under words become settings of our options; what the words expect of others is checked by settle().
  std::vector<Setting> in_our_names(const std::vector<Setting>& settings);
  // Sets one value; throws a usage error for an unknown name or a value that does not fit.
  void set(const Setting& setting);
  // When all are set: refuses what was asked for and has no effect. Another program's setting is noted and taken back instead.
  void settle();
  std::string why_idle(const Option& option) const;  // "" for one that has an effect
  // What a user should know of the settings: a line each.
  void note(std::string line) { notes_.push_back(std::move(line)); }
  const std::vector<std::string>& notes() const { return notes_; }

  // What is neither by default nor from a preset or a stored model, as words of a command line; without these names.
  std::vector<std::string> words(const std::vector<std::string>& without = {}) const;

  std::string help_text() const;
  std::string toml() const;     // a config file that gives these values again; what has no effect stands in comments
  std::string origins() const;  // "name = origin", a line each

 private:
  struct Expectation {
    Setting setting;  // what an option of ours must be
    Word word;
  };
  Option& insert(Option option);
  void require_expected() const;
  std::string command_, section_ = "options";
  std::deque<Option> options_;  // a deque: references returned by add stay valid
  std::vector<Word> foreign_words_;
  std::vector<Expectation> expected_;
  std::vector<std::string> notes_;
};

// As the help has it: "--lr X" and "highest learning rate (default 0.001)".
std::pair<std::string, std::string> described(const Option& option);
inline constexpr std::string_view idle_mark = "# no effect: ";  // before a line of toml()
inline std::string dashes(const std::string& name) { return name.size() == 1 ? "-" : "--"; }
std::string canonical_key(std::string name);  // RUN_DIR, run_dir, --run-dir → run-dir

}  // namespace chorale
