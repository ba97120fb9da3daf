// The program `chorale` finds the subcommand, resolves its options, reports usage errors before MPI starts, and then runs
// the command under any launcher. An error is printed once, even if several ranks of a host find it. Then the rank with the
// error ends all ranks.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <optional>

#include "collectives/backends/backends.hpp"
#include "experiments/common/advice.hpp"
#include "experiments/common/command.hpp"
#include "experiments/common/same_hosts.hpp"
#include "experiments/common/same_settings.hpp"
#include "parallel/plan/room.hpp"
#include "src/base/abstract_socket.hpp"
#include "src/base/built.hpp"
#include "src/base/child_program.hpp"
#include "src/base/error.hpp"
#include "src/base/host.hpp"
#include "src/base/interfaces.hpp"
#include "src/base/screen.hpp"
#include "src/base/text.hpp"
#include "src/base/thread_waits.hpp"
#include "src/math/bf16/engines.hpp"

namespace chorale {
namespace {

std::string overview() {
  std::string text =
      "example: make run                         # or: mpirun -np 4 build/chorale info\n\n"
      "Chorale: parallel training under MPI, its collectives and their costs.\n\n";
  for (const auto& rows : commands_by_group()) {
    text += rows[0]->group + std::string("\n");
    for (const CommandRow* row : rows) text += paragraph(fmt::format("  {:<10} ", row->name), row->about, screen_columns());
    text += "\n";
  }
  return text + "`" + program() + " help COMMAND` explains a command, with an example.\n";
}

std::string help(const CommandRow& row, const Options& options) {
  const std::size_t columns = screen_columns();
  std::string text = paragraph("example: ", row.example, columns, " \\");
  text += "\n" + paragraph("", fmt::format("chorale {}: {}.", row.name, row.about), columns);
  text += "\n" + options.help_text() + "\n";
  text += paragraph("", "Every option can also be set by CHORALE_NAME=… in the environment or name = … in a --config file.",
                    columns);
  if (!options.foreign_words().empty())
    text += paragraph("", "Megatron-LM's names are accepted too, or refused with a replacement: docs/other_programs.md.",
                      columns);
  return text;
}

// Returns the output of `help` and `help COMMAND`.
std::string help_for(const std::vector<std::string>& words) {
  if (words.size() == 2) return overview();
  if (words.size() > 3)
    usage_error("help explains one command", fmt::format("{} were named: {}", words.size() - 2, join(words, " ")),
                fmt::format("{} help {}", program(), words[2]));
  const CommandRow& row = find_command(words[2]);
  return help(row, DeclaredCommand(row).options);
}

// Returns false only if --backend excludes UCX.
bool may_use_ucx(const Options& options) {
  const Option* const backend = options.find("backend");
  if (!backend) return true;
  return std::ranges::any_of(split(backend->text, ','), [](const std::string& part) {
    const std::string name = part.substr(part.find('=') + 1);  // "tp=ucx"; npos + 1 is 0
    const auto takes = [&](const Backend& row) {
      return row.uses_ucx && (name == row.name || name == "auto" || name == "all");
    };
    return std::ranges::any_of(all_backends(), takes);
  });
}

int run(const Launch& launch, std::vector<std::string> words, std::optional<mpi::Runtime>& runtime) {
  if (words.size() < 2) usage_error("no command given", program() + " COMMAND …", program() + " --help lists the commands");
  if (words[1] == "--help" || words[1] == "-h" || words[1] == "help") {
    const std::string text = help_for(words);
    if (launch.rank == 0) fmt::print("{}", text);
    return 0;
  }
  if (words[1] == "--version") {
    if (launch.rank == 0) fmt::print("chorale {} ({})\n", version, built("git_commit"));
    return 0;
  }
  if (words.size() > 2 && words[1] == "bench" && words[2] == "kernels") words.erase(words.begin() + 1);
  const CommandRow& row = find_command(words[1]);
  SystemClock clock;  // must outlive the command
  DeclaredCommand declared(row);
  const auto& [command, log_level, options] = declared;
  const std::vector<std::string> arguments(words.begin() + 2, words.end());
  if (std::any_of(arguments.begin(), arguments.end(), [](const auto& a) { return a == "--help" || a == "-h"; })) {
    if (launch.rank == 0) fmt::print("{}", help(row, options));
    return 0;
  }
  if (row.needs_ranks) let_waiting_threads_sleep(words);
  if (!row.needs_ranks && launch.size > 1)
    usage_error(fmt::format("{} runs as one process", row.name),
                fmt::format("{} started {} processes", launch.launcher, launch.size), "run it without a launcher");
  declared.take(arguments, own_environment(), names_of_all_commands(), launch);
  attention::chosen_bf16_engine();  // refuses an invalid CHORALE_BF16_ATTENTION before anything starts

  if (row.needs_ranks && !command->starts_ranks()) {
    // If another host is lost, a write to it must fail with an error. SIGPIPE would end this rank instead, and it would get
    // the blame.
    if (launch.size > 1) std::signal(SIGPIPE, SIG_IGN);
    require_reaching_interfaces(launch, process_environment(), network_interfaces(), host_name(), may_use_ucx(options));
    runtime.emplace(launch);
    Log log({.rank = runtime->rank(), .level = log_level});
    require_same_hosts(*runtime, clock, log);
    require_same_settings(options, runtime);
  }
  const std::string command_line = join(words, " ");
  Session session{options, command_line, log_level, clock, runtime ? &*runtime : nullptr};
  return command->run(session);
}

// Usually every rank finds the same error, and rank 0 prints it. When rank 0 exits, the launcher ends the other ranks. The
// other ranks wait here, so that the launcher ends them before they print. If rank 0 found no error, one rank of each host
// prints the error.
bool prints_refusal(const Launch& launch) {
  constexpr double patience_seconds = 2;
  if (launch.rank == 0) return true;
  const auto word = claim(fmt::format("chorale-refusal-{}", getppid()));
  SystemClock().sleep(patience_seconds);
  return word.has_value();
}

int refuse(const Launch& launch, const std::exception& error) {
  constexpr double others_seconds = 0.4;  // time for the other ranks to arrive here
  if (prints_refusal(launch)) std::fputs(describe(error, launch.rank, launch.size).c_str(), stderr);
  if (launch.size > 1) SystemClock().sleep(others_seconds);
  return exit_code_of(error);
}

int guarded(const std::vector<std::string>& words) {
  std::signal(SIGXFSZ, SIG_IGN);  // so that a write beyond RLIMIT_FSIZE fails, and the error names the file
  const Launch launch = read_launch(process_environment());
  std::optional<mpi::Runtime> runtime;
  try {
    const int code = run(launch, words, runtime);
    if (std::fflush(stdout) != 0 || std::ferror(stdout))
      throw Error(Exit::runtime, "the output cannot be written", std::strerror(errno), "free some space at its destination");
    return code;
  } catch (const std::exception& error) {
    const auto* ours = dynamic_cast<const Error*>(&error);
    if (runtime && dynamic_cast<const NoRoom*>(&error)) {
      if (launch.rank == 0) std::fputs(describe(error, launch.rank, launch.size).c_str(), stderr);
      runtime.reset();  // finalizes MPI, so that the launcher reports no crash
      return exit_code_of(error);
    }
    if (!runtime) return refuse(launch, error);
    const bool usage = ours && ours->exit() == Exit::usage;
    if (usage && !prints_refusal(launch)) return exit_code_of(error);
    runtime->abort(error);
  }
}

}  // namespace
}  // namespace chorale

int main(int argc, char** argv) { return chorale::guarded(std::vector<std::string>(argv, argv + argc)); }
