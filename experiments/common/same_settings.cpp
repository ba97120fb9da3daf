#include "experiments/common/same_settings.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "src/base/error.hpp"
#include "src/base/host.hpp"
#include "src/base/text.hpp"

namespace chorale {
namespace {

// Returns a line for the command, followed by one line per setting. A setting contains no newlines, so line i shows the same
// setting on every rank.
std::vector<std::string> lines_of(const Options& options) {
  std::vector<std::string> lines = split(fmt::format("command = {}\n{}", options.command(), options.toml()), '\n');
  for (std::string& line : lines)
    if (line.starts_with(idle_mark)) line.erase(0, idle_mark.size());
  return lines;
}

// The first setting that differs from rank 0's, or "".
std::string difference(const Options& options, const std::string& theirs, int rank) {
  const std::vector<std::string> mine = lines_of(options), first = split(theirs, '\n');
  const auto [here, there] = std::mismatch(mine.begin(), mine.end(), first.begin(), first.end());
  if (here == mine.end()) return "";
  const Option* option = options.find(here->substr(0, here->find(' ')));
  return fmt::format("{} ({}) on rank {}, {}; {} on rank 0", *here, option ? option->origin : "command line", rank,
                     host_name(), *there);
}

}  // namespace

void require_same_settings(const Options& options, std::optional<mpi::Runtime>& runtime) {
  const std::string theirs = mpi::broadcast(runtime->world(), join(lines_of(options), "\n"));
  std::string found;
  for (const std::string& text : mpi::gather(runtime->world(), difference(options, theirs, runtime->rank())))
    if (found.empty()) found = text;
  found = mpi::broadcast(runtime->world(), found);
  if (found.empty()) return;
  runtime.reset();  // all ranks finalize MPI here, so the error is printed only once
  const std::string key = found.substr(0, found.find(' '));
  usage_error(fmt::format("ranks differ in {}", key), found,
              key == "command"
                  ? "start the same command on all ranks"
                  : fmt::format("give all ranks the same --{}; its variable may be set on some hosts only", key));
}

}  // namespace chorale
