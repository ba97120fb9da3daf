// `chorale completion bash`: prints a script with which a shell completes commands, options and their values. The script is
// generated from the table of commands and their declared options.
//
//   source <(chorale completion bash)          `make install` puts the script where bash looks for it
//
//   chorale train --dtype b⇥                   completes a value of --dtype; a file name for --data
//   chorale train --la⇥                        completes an option of the command
//   chorale show all_r⇥                        completes words that the command takes, such as collectives, and file names
#include <fmt/format.h>

#include "experiments/command.hpp"
#include "src/base/error.hpp"
#include "src/base/text.hpp"

namespace chorale {
namespace {

// The shell script that `completion` prints. It skips "=", which bash treats as a separate word (--dtype=bf16). In a list
// a,b,c it completes the last element.
constexpr const char* script = R"(# Completion of chorale's commands, made by `chorale completion`.
_chorale() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}} command=${{COMP_WORDS[1]}}
  [ "$current" = = ] && current=
  [ "$previous" = = ] && previous=${{COMP_WORDS[COMP_CWORD-2]}}
  [ "${{COMP_WORDS[COMP_CWORD]}}" = = ] && previous=${{COMP_WORDS[COMP_CWORD-1]}}
  COMPREPLY=()
  if [ "$COMP_CWORD" = 1 ]; then
    COMPREPLY=($(compgen -W "{} --help --version" -- "$current"))
    return
  fi
  case "$command $previous" in
{}  esac
  case "$command $current" in
{}  esac
}}
complete -o filenames -F _chorale chorale
)";

std::string from_words(const std::vector<std::string>& words) {
  return fmt::format(R"(COMPREPLY=($(compgen -P "${{current%"${{current##*,}}"}}" -W "{}" -- "${{current##*,}}")))",
                     join(words, " "));
}

bool takes_files(const Option& option) { return option.metavar.find("FILE") != std::string::npos; }

std::string values_of(const Command& command, const Option& option) {
  std::vector<std::string> words = option.choices.empty() ? option.suggestions : option.choices;
  if (option.name == "preset")
    for (const Preset& preset : command.presets()) words.push_back(preset.name);
  if (!words.empty()) return from_words(words);
  if (takes_files(option)) return R"(COMPREPLY=($(compgen -f -- "$current")))";
  if (option.metavar == "DIR") return R"(COMPREPLY=($(compgen -d -- "$current")))";
  return ":";  // completes nothing: a number or free text
}

class Completion final : public Command {
 public:
  void declare(Options& options) override {
    options.add_positional("shell", shells_, "bash or zsh; zsh loads its bashcompinit for this")
        .words("SHELL")
        .suggest({"bash", "zsh"});
  }

  void check(const Launch&) override {
    if (shells_ != std::vector<std::string>{"bash"} && shells_ != std::vector<std::string>{"zsh"})
      usage_error("completion needs the name of a shell",
                  fmt::format("\"{}\" was given; bash and zsh are supported", join(shells_, " ")),
                  "source <(chorale completion bash)");
  }

  int run(Session&) override {
    std::string names, values, words;
    for (const CommandRow& row : all_commands()) {
      names += (names.empty() ? "" : " ") + std::string(row.name);
      const DeclaredCommand declared(row);
      std::vector<std::string> flags{"--help"}, own;
      bool files = false;
      for (const Option& option : declared.options.all()) {
        if (option.positional) {
          own = option.suggestions;
          files = takes_files(option) || option.metavar == "DIR";
          continue;
        }
        flags.push_back("--" + option.name);
        std::string pattern = fmt::format("\"{} --{}\"", row.name, option.name);
        for (const std::string& alias : option.aliases)
          pattern += fmt::format(" | \"{} {}{}\"", row.name, dashes(alias), alias);
        if (!option.is_switch)
          values += fmt::format("    {}) {}; return ;;\n", pattern, values_of(*declared.command, option));
      }
      words += fmt::format("    \"{} -\"*) {} ;;\n", row.name, from_words(flags));
      words += fmt::format("    \"{} \"*) {}{} ;;\n", row.name, from_words(own),
                           files ? R"(; COMPREPLY+=($(compgen -f -- "$current")))" : "");
    }
    if (shells_[0] == "zsh") fmt::print("#compdef chorale\nautoload -U +X bashcompinit && bashcompinit\n");
    fmt::print(fmt::runtime(script), names, values, words);
    return 0;
  }

 private:
  std::vector<std::string> shells_;
};

}  // namespace

std::unique_ptr<Command> make_completion() { return std::make_unique<Completion>(); }

}  // namespace chorale
