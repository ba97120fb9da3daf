// One subcommand of `chorale`: a row of the table in commands.cpp, and an object that exists while the subcommand runs.
//
//   declare   declares the options, so that they can be set, listed and explained
//   check     throws usage errors before MPI starts: missing files, unwritable folders, layouts that do not fit the ranks.
//             It must have the same result on every rank: a rank that continued alone would wait in MPI forever
//   run       does the work; returns the exit code
#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "src/base/mpi.hpp"
#include "src/base/settings.hpp"

namespace chorale {

struct Session {
  const Options& options;  // with the final values of all options
  const std::string& command_line;
  const std::string& log_level;  // of the console
  Clock& clock;
  const mpi::Runtime* runtime;  // nullptr for a command that needs no ranks, or starts ranks itself
  std::string run_name = "";    // name of the run's folder in a suite, whose runs print nothing to the console; "": no suite
};

class Command {
 public:
  virtual ~Command() = default;
  virtual void declare(Options& options) = 0;
  virtual std::vector<Preset> presets() const { return {}; }         // the values of --preset NAME
  virtual std::vector<ForeignConfig> foreign() const { return {}; }  // formats of other programs' files with settings
  virtual void check(const Launch&) {}
  virtual bool starts_ranks() const { return false; }  // true if run() launches ranks; MPI is then not started before
  virtual int run(Session& session) = 0;
};

struct CommandRow {
  const char* name;
  const char* about;
  const char* example;  // a complete command line; a test runs it
  bool needs_ranks;     // whether MPI is started before run()
  std::unique_ptr<Command> (*make)();
  const char* group = "other commands";  // heading in --help under which the command is listed
};

const std::vector<CommandRow>& all_commands();
const CommandRow& find_command(const std::string& name);  // throws a usage error if there is none
// The rows by group, in order of first appearance.
std::vector<std::pair<std::string, std::vector<const CommandRow*>>> commands_by_group();

// A command with all its options: those it declares, and those that every command has. The options write their values into
// `command` and `log_level`, so this object must outlive them.
struct DeclaredCommand {
  explicit DeclaredCommand(const CommandRow& row);
  std::unique_ptr<Command> command;
  std::string log_level = "info";
  Options options;
};

}  // namespace chorale
