// One subcommand of `chorale`: a row of the table in commands.cpp, and an object that lives for one run of it.
//
//   declare   declares its options, so that they can be set, listed and explained
//   check     refuses errors before MPI starts: missing files, unwritable folders, layouts that do not fit the ranks.
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
  const Options& options;  // as resolved
  const std::string& command_line;
  const std::string& log_level;  // of the console
  Clock& clock;
  const mpi::Runtime* runtime;  // nullptr for a command that needs no ranks, or starts them itself
  std::string run_name = "";    // in a suite: the name of its folder; the suite then uses the console, not the run
};

class Command {
 public:
  virtual ~Command() = default;
  virtual void declare(Options& options) = 0;
  virtual std::vector<Preset> presets() const { return {}; }         // the values of --preset NAME
  virtual std::vector<ForeignConfig> foreign() const { return {}; }  // other programs' files that it reads settings from
  virtual void check(const Launch&) {}
  virtual bool starts_ranks() const { return false; }  // true if it launches ranks itself; then MPI is not started here
  virtual int run(Session& session) = 0;
};

struct CommandRow {
  const char* name;
  const char* about;
  const char* example;  // runs as it is
  bool needs_ranks;     // MPI is started for it
  std::unique_ptr<Command> (*make)();
  const char* group = "other commands";  // its heading in --help
};

const std::vector<CommandRow>& all_commands();
const CommandRow& find_command(const std::string& name);  // throws a usage error if there is none
// The rows by group, in order of first appearance.
std::vector<std::pair<std::string, std::vector<const CommandRow*>>> commands_by_group();

// A command with all its options: its own and those that every command has. Options refer to the fields here.
struct DeclaredCommand {
  explicit DeclaredCommand(const CommandRow& row);
  std::unique_ptr<Command> command;
  std::string log_level = "info";
  Options options;
};

}  // namespace chorale
