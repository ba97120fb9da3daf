#include "experiments/compare/earlier.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>

#include "experiments/common/advice.hpp"
#include "src/base/error.hpp"
#include "src/base/host.hpp"
#include "src/record/reader.hpp"
#include "src/record/run_folder.hpp"

namespace chorale::compare {
namespace {

namespace fs = std::filesystem;

constexpr const char* failure = "failure.txt";

}  // namespace

void require_can_go_on(const fs::path& folder, const Launch& launch) {
  if (!fs::exists(folder / "suite.toml"))
    usage_error("there is no comparison to continue", fmt::format("{} has no suite.toml", folder.string()),
                "name the folder that chorale compare created: --resume runs/<id>");
  const Reader begun(folder / "run.h5");
  const std::string ranks = begun.attribute("jobsize");
  if (ranks != std::to_string(launch.size))
    usage_error("the comparison was started on another number of ranks", fmt::format("{} then, {} now", ranks, launch.size),
                command_on(std::atoll(ranks.c_str()), "compare --resume " + folder.string()));
  if (begun.attribute("status") == "running" && begun.attribute("hostname") == host_name())
    for (const Variable& pids : begun.variables("/ranks"))
      if (pids.name == "pid" && !pids.cells.empty() && is_running(std::atoi(pids.cells[0].c_str())))
        usage_error("the comparison is still running", fmt::format("process {} writes {}", pids.cells[0], folder.string()),
                    "wait until it ends, or stop it");
}

std::string take_finished(const fs::path& folder, const std::vector<Repetition>& turns, SuiteSummary& summary) {
  std::string left(turns.size(), '.');
  for (std::size_t t = 0; t < turns.size(); ++t) {
    const fs::path of_turn = folder / turns[t].id(), record = of_turn / "run.h5";
    if (std::ifstream file(of_turn / failure); file) {
      std::string what;
      std::getline(file, what);
      summary.failed(t, fmt::format("failed: {} (delete {} to try again)", what, (of_turn / failure).string()));
    } else if (fs::exists(record) && status_of(record) == "ok") {
      summary.finished(t, record);
    } else {
      left[t] = 'x';
    }
  }
  summary.keep();
  return left;
}

void leave_failure(const fs::path& folder_of_turn, const std::string& what) {
  write_file(folder_of_turn / failure, what + "\n");
}

std::string status_of(const fs::path& record) try { return Reader(record).attribute("status"); } catch (const Error&) {
  return "";
}

}  // namespace chorale::compare
