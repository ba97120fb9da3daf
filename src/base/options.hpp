// Options of one command. A command declares each once, as a reference to a field of its own:
//
//   options.add("ranks", ranks_, "ranks to plan for").range(1, 64);
//
// and the same name then works everywhere, the later winning over the earlier:
//
//   default < preset < config file (ranks = 4) < environment (CHORALE_RANKS=4) < command line (--ranks 4)
//
// The origin of every value is kept. An unknown name is an error that says where it stands and what was probably meant.
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace chorale {

// Where a value came from: "default", "preset tiny", "run.toml:3", "CHORALE_RANKS", "command line".
struct Setting {
  std::string key;  // canonical: lower case, words joined by hyphens
  std::string text;
  std::string origin;
};

struct Preset {
  std::string name;
  std::string about;
  std::vector<std::pair<std::string, std::string>> values;
};

class Option {
 public:
  Option& alias(std::string name) { return aliases.push_back(std::move(name)), *this; }  // "world-size", or a letter: -n
  Option& one_of(std::vector<std::string> names) { return choices = std::move(names), *this; }
  Option& range(double low, double high) { return lowest = low, highest = high, *this; }
  // The two exclude each other; what is given beside a config file replaces the other one in it.
  Option& instead_of(std::string other) { return replaced = std::move(other), *this; }
  Option& words(std::string placeholder) { return metavar = std::move(placeholder), *this; }  // FILE, N, … in the help

  Option& suggest(std::vector<std::string> names) { return suggestions = std::move(names), *this; }

  std::string name;
  std::string about;
  std::string section;  // of the help
  std::string metavar;
  std::string text;  // the value as it stands, for records and help
  std::string origin = "default";
  std::string replaced;  // another option
  std::vector<std::string> aliases;
  std::vector<std::string> choices;      // of each element, when the value is a list
  std::vector<std::string> suggestions;  // what a shell offers where more than choices is taken
  double lowest = 0, highest = -1;       // no limits while lowest > highest
  bool positional = false, is_list = false, is_switch = false, is_number = false, is_source = false;
  // Sets the field, and `text` to its canonical form (".5" → "0.5"); returns what was expected when it cannot.
  std::function<std::string(const std::string&)> assign;
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
  // A source of settings, which `resolve` reads by name; what it says is folded into the others.
  Option& add(const std::string& name, const std::string& about);
  Option& add_positional(const std::string& name, std::vector<std::string>& field, const std::string& about);

  const std::string& command() const { return command_; }
  const std::deque<Option>& all() const { return options_; }
  std::vector<std::string> names() const;            // canonical names and aliases
  const Option* find(const std::string& key) const;  // by name or alias
  const std::string& origin(const std::string& name) const;

  // Sets one value; throws a usage error for an unknown name or a value that does not fit.
  void set(const Setting& setting);

  // What is neither by default nor from a preset or a stored model, as words of a command line; without these names.
  std::vector<std::string> words(const std::vector<std::string>& without = {}) const;

  std::string help_text() const;
  std::string toml() const;     // a config file that gives these values again
  std::string origins() const;  // "name = origin", a line each

 private:
  Option& insert(Option option);
  std::string command_, section_ = "options";
  std::deque<Option> options_;  // a deque: references returned by add stay valid
};

// As the help has it: "--lr X" and "highest learning rate (default 0.001)".
std::pair<std::string, std::string> described(const Option& option);
inline std::string dashes(const std::string& name) { return name.size() == 1 ? "-" : "--"; }
std::string canonical_key(std::string name);  // RUN_DIR, run_dir, --run-dir → run-dir

}  // namespace chorale
