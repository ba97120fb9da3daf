// `chorale man`: the manual as a page for man, made of the table of commands and of what each declares, so that nothing is
// kept by hand.
//
//   chorale man > chorale.1; man ./chorale.1          `make install` puts it where man looks
#include <fmt/format.h>

#include "experiments/command.hpp"
#include "src/base/built.hpp"
#include "src/base/text.hpp"

namespace chorale {
namespace {

// Text that troff prints as it stands: no escapes, no hyphens for minus signs, no requests at the beginning of a line.
std::string plain(const std::string& text) {
  std::string out = text.starts_with('.') || text.starts_with('\'') ? "\\&" : "";
  for (const char c : text)
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else
      out += c;
  return out;
}

// As it is called where it was installed, not from the folder it was built in.
std::string example(std::string command) {
  constexpr std::string_view built_in = "build/";
  if (const auto at = command.find(built_in); at != std::string::npos) command.erase(at, built_in.size());
  return fmt::format(".PP\n.nf\n{}\n.fi\n", plain(command));
}

std::string options_of(const Options& options) {
  std::string out, section;
  for (const Option& option : options.all()) {
    if (option.passed_on) continue;  // the other command's page has it
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
    fmt::print(".SH NAME\nchorale \\- parallel training under MPI, its collectives, and what they cost\n");
    fmt::print(".SH SYNOPSIS\n.B chorale\n.I COMMAND\n.RI [ OPTION \" ...]\"\n.br\n");
    fmt::print(".B mpirun \\-n\n.I RANKS\n.B chorale\n.I COMMAND\n.RI [ OPTION \" ...]\"\n");
    fmt::print(".SH COMMANDS\n");
    for (const auto& rows : commands_by_group())
      for (const CommandRow* row : rows.second)
        fmt::print(".SS {}\n{}.\n{}{}", plain(row->name), plain(row->about), example(row->example),
                   options_of(DeclaredCommand(*row).options));
    fmt::print("{}", the_rest);
    return 0;
  }

 private:
  static constexpr const char* the_rest = R"(.SH CONFIGURATION
A value is taken from the command line, else from the environment, else from the file that
.B \-\-config
names, else from the file of another program, else from the preset, else it is the default.
Records keep where each came from.
.SH ENVIRONMENT
.TP
.BI CHORALE_ NAME
The option
.BI \-\- name
of the command, with underscores for hyphens: CHORALE_RUN_DIR.
.TP
.B CHORALE_CUDA_PLUGIN
The CUDA plugin to load, instead of the one beside the program.
.TP
.B CHORALE_CUDA_AWARE
The backends whose libraries take buffers on a device themselves: mpi, ucx, mpi,ucx or none; else the libraries are asked.
.TP
.B CHORALE_TIMEOUT
A rank that waits for another gives up when nothing has moved for so many seconds (600); 0 is no limit.
.SH FILES
.TP
.I runs/latest/run.h5
The record of the newest run, netCDF\-4. Beside it stand
.IR metrics.jsonl ,
.IR config.toml ,
.I log/
and
.IR checkpoints/ .
.SH EXIT STATUS
.TP
0
All went well.
.TP
1
Something failed while running.
.TP
2
What was asked for cannot be; nothing was started.
.TP
3
A check failed.
.TP
4
A rank waited too long for another.
)";
};

}  // namespace

std::unique_ptr<Command> make_man() { return std::make_unique<Man>(); }

}  // namespace chorale
