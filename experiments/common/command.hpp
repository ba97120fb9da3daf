// A subcommand of `chorale` is a row of the table in commands.cpp, and an object that exists while the subcommand runs.
//
//   declare   declares the options, so that they can be set, listed and explained
//   check     throws usage errors before MPI starts: missing files, unwritable folders, layouts that do not fit the ranks.
//             check must have the same result on every rank: a rank that continued alone would wait in MPI forever
//   run       does the work; returns the exit code
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "src/base/mpi.hpp"
#include "src/base/progress.hpp"
#include "src/base/settings.hpp"

namespace chorale {

struct Session {
  const Options& options;  // all options, with their final values
  const std::string& command_line;
  const std::string& log_level;  // log level of the console
  Clock& clock;
  const mpi::Runtime* runtime;  // null for a command that needs no ranks or that launches ranks itself
  std::string run_name = "";    // in a suite: the name of this run's folder; the run then prints nothing to the console

  Progress progress(const std::string& what, std::int64_t total) const {
    return {what, total, clock, Progress::screen_at(log_level)};
  }
};

class Command {
 public:
  virtual ~Command() = default;
  virtual void declare(Options& options) = 0;
  virtual std::vector<Preset> presets() const { return {}; }         // the values of --preset NAME
  virtual std::vector<ForeignConfig> foreign() const { return {}; }  // files of other programs that the command can read
  virtual void check(const Launch&) {}
  virtual bool starts_ranks() const { return false; }  // if true, run() launches ranks, and does not use MPI itself
  virtual int run(Session& session) = 0;
};

using MakeCommand = std::unique_ptr<Command>();

struct CommandRow {
  const char* name;
  const char* about;
  const char* example;  // a complete command line; a test runs it
  bool needs_ranks;     // whether MPI is started before run()
  MakeCommand* make;
  const char* group = "other commands";  // heading in --help under which the command is listed
};

const std::vector<CommandRow>& all_commands();
const CommandRow& find_command(const std::string& name);  // throws a usage error if no command has this name
// The rows of each group, in the order in which the groups first appear in the table.
std::vector<std::vector<const CommandRow*>> commands_by_group();

// The allowed names of CHORALE_ environment variables: the options of all commands, and the variables that DevicePlugin, the
// guard process and the collectives read.
std::vector<std::string> names_of_all_commands();

// A command with all its options, and with the options that every command has. `options` keeps pointers into `command` and
// `log_level`, to which it writes the option values. Thus no copy of `options` is allowed to outlive this object.
struct DeclaredCommand {
  explicit DeclaredCommand(const CommandRow& row);
  // Sets the options from all sources, and calls the command's check. `known`: the options of all commands. If the operating
  // system refuses a path, for example because its name is too long, throws a usage error.
  void take(const std::vector<std::string>& arguments, const std::vector<std::string>& variables,
            const std::vector<std::string>& known, const Launch& launch);
  std::unique_ptr<Command> command;
  std::string log_level = "info";
  Options options;
};

}  // namespace chorale
