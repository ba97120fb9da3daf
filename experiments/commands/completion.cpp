// `chorale completion bash` prints a script with which a shell completes commands, options and their values. The script is
// generated from the table of commands and their declared options.
//
//   source <(chorale completion bash)          `make install` puts the script into the folder where bash expects it
//
//   chorale train --dtype b⇥                   completes a value of --dtype; a file name for --data
//   chorale train --la⇥                        completes an option of the command
//   chorale train --layout dp2.t⇥              completes a part of a layout
//   chorale show all_r⇥                        completes positional arguments, such as collectives and file names
#include <fmt/format.h>

#include "experiments/common/command.hpp"
#include "parallel/layout/layout.hpp"
#include "src/base/error.hpp"
#include "src/base/text.hpp"

namespace chorale {
namespace {

// The shell script that `completion` prints. bash splits words at = and : (--dtype=bf16, simulated:selene). The script
// therefore joins the parts of the last word, and removes the part that bash already has (`kept`) from the completions. The
// script completes the last element of a list such as a,b,c or tp=shm,dp=ucx, and the last part of a layout such as dp2.tp2.
constexpr const char* script = R"(# Completion of chorale's commands, made by `chorale completion`.
_chorale() {{
  local command=${{COMP_WORDS[1]}} at=$COMP_CWORD current=${{COMP_WORDS[COMP_CWORD]}} previous last kept
  while ((at > 1)) && [[ ${{COMP_WORDS[at]}} == [:=] || ${{COMP_WORDS[at-1]}} == [:=] ]]; do
    at=$((at - 1))
    current=${{COMP_WORDS[at]}}$current
  done
  previous=${{COMP_WORDS[at-1]}}
  if [[ $current == --*=* ]]; then
    previous=${{current%%=*}}
    current=${{current#*=}}
  fi
  last=${{COMP_WORDS[COMP_CWORD]}}
  [[ $last == [:=] ]] && last=
  kept=${{current%"$last"}}
  COMPREPLY=()
  if [ "$COMP_CWORD" = 1 ]; then
    COMPREPLY=($(compgen -W "{0} help --help --version" -- "$current"))
    return
  fi
  _chorale_words
  COMPREPLY=("${{COMPREPLY[@]#"$kept"}}")
}}
_chorale_words() {{
  case "$command $previous" in
{1}  esac
  case "$command $current" in
    "help "*) COMPREPLY=($(compgen -W "{0}" -- "$current")) ;;
{2}  esac
}}
complete -o filenames -F _chorale chorale
)";

// Returns shell code that completes the text after the last character in `separators`.
std::string from_words(const std::vector<std::string>& words, const char* separators = ",=") {
  return fmt::format(R"(COMPREPLY=($(compgen -P "${{current%"${{current##*[{1}]}}"}}" -W "{0}" -- "${{current##*[{1}]}}")))",
                     join(words, " "), separators);
}

// The parts of a layout such as dp2.tp2.z1.sp. Most parts are followed by a number, so no space is added after the completed
// word.
std::string from_parts_of_layouts() {
  std::vector<std::string> parts{"sp", "hpz", "v"};
  for (const AxisRow& axis : all_axes())
    if (!axis.follows()) parts.emplace_back(axis.name);
  for (const char* stage : {"z1", "z2", "z3"}) parts.emplace_back(stage);
  for (std::string& name : schedule_names()) parts.push_back(std::move(name));
  return "compopt -o nospace 2> /dev/null; " + from_words(parts, ",.");
}

bool takes_files(const Option& option) { return option.metavar.find("FILE") != std::string::npos; }

std::string values_of(const Option& option) {
  if (option.name == "layout" || option.name == "layouts") return from_parts_of_layouts();
  const std::vector<std::string> words = option.choices.empty() ? option.suggestions : option.choices;
  if (!words.empty())
    return from_words(words) + (takes_files(option) ? R"(; COMPREPLY+=($(compgen -f -- "$current")))" : "");
  if (takes_files(option)) return R"(COMPREPLY=($(compgen -f -- "$current")))";
  if (option.metavar == "DIR") return R"(COMPREPLY=($(compgen -d -- "$current")))";
  return ":";  // completes nothing, because the value is a number or free text
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
        if (!option.is_switch) values += fmt::format("    {}) {}; return ;;\n", pattern, values_of(option));
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
