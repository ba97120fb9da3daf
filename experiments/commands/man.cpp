// `chorale man` prints the manual page, which is generated from the table of commands and their declared options.
//
//   chorale man > chorale.1; man ./chorale.1          `make install` puts the page into the folder where man expects it
#include <fmt/format.h>

#include <algorithm>

#include "experiments/common/command.hpp"
#include "src/base/built.hpp"

namespace chorale {
namespace {

// A list with more choices does not fit on a line, so it gets spaces at which troff can break it.
constexpr std::ptrdiff_t most_choices_of_a_word = 8;

// Escapes text so that troff prints it unchanged: backslashes, minus signs, and a period or apostrophe that begins the text.
std::string plain(const std::string& text) {
  std::string out = text.starts_with('.') || text.starts_with('\'') ? "\\&" : "";
  for (const char c : text)
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else if (c == '|' && std::ranges::count(text, '|') > most_choices_of_a_word)
      out += "| ";
    else
      out += c;
  return out;
}

// Removes the build folder from an example, so that it runs the installed program.
std::string example(std::string command) {
  constexpr std::string_view built_in = "build/";
  if (const auto at = command.find(built_in); at != std::string::npos) command.erase(at, built_in.size());
  return fmt::format(".PP\n.nf\n{}\n.fi\n", plain(command));
}

std::string options_of(const Options& options) {
  std::string out, section;
  for (const Option& option : options.all()) {
    if (option.passed_on) continue;  // an option that is passed on to a different command, whose section describes it
    if (option.section != section) out += fmt::format(".PP\n{}:\n", plain(section = option.section));
    const auto [head, tail] = described(option);
    out += fmt::format(".TP\n\\fB{}\\fR\n{}\n", plain(head), plain(tail));
  }
  return out;
}

class Man final : public Command {
 public:
  void declare(Options&) override {}

  int run(Session&) override {
    fmt::print(".TH CHORALE 1 \"\" \"chorale {}\" \"User Commands\"\n", plain(version));
    fmt::print(".SH NAME\nchorale \\- parallel training under MPI, its collectives and their costs\n");
    fmt::print(".SH SYNOPSIS\n.B chorale\n.I COMMAND\n.RI [ OPTION \" ...]\"\n.br\n");
    fmt::print(".B mpirun \\-n\n.I RANKS\n.B chorale\n.I COMMAND\n.RI [ OPTION \" ...]\"\n");
    fmt::print(".SH COMMANDS\n");
    for (const auto& rows : commands_by_group())
      for (const CommandRow* row : rows)
        fmt::print(".SS {}\n{}.\n{}{}", plain(row->name), plain(row->about), example(row->example),
                   options_of(DeclaredCommand(*row).options));
    fmt::print("{}", the_rest);
    return 0;
  }

 private:
  static constexpr const char* the_rest = R"(.SH CONFIGURATION
A value comes from the first of these sources that has one: the command line, the environment, the file given by
.BR \-\-config ,
the file of another program, the preset, the default.
Records keep the source of each value.
.SH ENVIRONMENT
.TP
.BI CHORALE_ NAME
The option
.BI \-\- name
of the command, with underscores for hyphens: CHORALE_RUN_DIR.
.TP
.B CHORALE_BF16_ATTENTION
The instructions that multiply attention's bf16 numbers on the host: amx, avx512_bf16 or f32. If the variable is unset,
chorale takes the fastest that the processor has.
.TP
.B CHORALE_CUDA_PLUGIN
The CUDA plugin to load, instead of the one beside the program.
.TP
.B CHORALE_CUDA_AWARE
The backends whose libraries are CUDA-aware: mpi, ucx, mpi,ucx or none. If the variable is unset, chorale asks the libraries.
.TP
.B CHORALE_TIMEOUT
The run ends with exit status 4 if a rank waits for another and no rank makes any progress for this many seconds
(default: 60 for train, otherwise 600); 0: no limit.
.SH FILES
.TP
.I runs/latest/run.h5
The record of the newest run, netCDF\-4. Beside it are
.IR metrics.jsonl ,
.IR config.toml ,
.I log/
and
.IR checkpoints/ .
.SH EXIT STATUS
.TP
0
Success.
.TP
1
Something failed while running.
.TP
2
The request has a mistake or cannot be fulfilled; nothing was started.
.TP
3
A check failed. For plan: the layout, or each layout of the table, does not fit into memory.
.TP
4
A rank waited too long for another rank, or for two minutes after a request to stop.
)";
};

}  // namespace

std::unique_ptr<Command> make_man() { return std::make_unique<Man>(); }

}  // namespace chorale
