// `chorale launch` starts a training run and keeps it going: if a rank dies or hangs, or a host is gone, the run goes on
// from its newest checkpoint, on a layout for the ranks that are left. `chorale resize` changes the number of ranks.
//
//   chorale launch --ranks 4 -- train --preset tiny --numerics exact --layout dp2.tp2.z1
//   chorale launch --hosts n0:2,n1:2 --min-ranks 2 -- train --config run.toml
//   chorale resize 2 runs/latest
//
// Exit codes: 0 if the run is complete or was asked to end; 2 and 3 as the run; 4 if the launch gave up after deaths.
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <optional>

#include "experiments/common/advice.hpp"
#include "experiments/common/command.hpp"
#include "experiments/launch/control.hpp"
#include "experiments/launch/supervisor.hpp"
#include "experiments/train/layout_flags.hpp"
#include "parallel/layout/layout.hpp"
#include "src/base/error.hpp"
#include "src/base/signals.hpp"
#include "src/base/text.hpp"
#include "src/record/run_folder.hpp"

namespace chorale {
namespace {

class LaunchCommand final : public Command {
 public:
  void declare(Options& o) override {
    o.add_positional("program", words_, "after --, the training run: train and its options").words("-- train …");
    o.add("ranks", request_.slots, "slots for ranks on this host; 0: as many as the layout of the run needs").range(0, 4096);
    o.add("hosts", hosts_, "slots on other hosts, instead of --ranks: n0:2,n1:2, or a file with one host per line")
        .words("HOSTS|FILE")
        .instead_of("ranks");
    o.add("min-ranks", request_.fewest, "wait for slots rather than run on fewer ranks").range(1, 4096);
    o.add("max-restarts", request_.most_restarts, "give up after so many restarts").range(0, 1e9);
    o.add_seconds("quarantine", request_.quarantine_seconds,
                  "time for which a slot is not used after its rank died; doubles with each further death");
    o.add("snapshot-interval", request_.snapshot_interval,
          "steps between snapshots in memory, which need no disk; 0: none. With --hosts, a copy is sent to another host")
        .range(0, 1e9);
    o.add("same-layout", request_.same_layout, "run on the layout that was asked for only, and wait for its slots");
    o.add("run-dir", request_.run_dir, "create the folder of the launch in this folder")
        .words("DIR")
        .changes(Effect::output);
  }

  void check(const Launch& launch) override {
    const bool is_shell = launch.launcher.starts_with("Slurm") && launch.size == 1;  // the shell of salloc
    if (!launch.launcher.empty() && !is_shell)
      usage_error("launch starts the ranks itself", fmt::format("{} started this process", launch.launcher),
                  fmt::format("start it alone: {} launch --ranks {} -- train …", program(), launch.size));
    const std::string nodes = process_environment()("SLURM_JOB_NUM_NODES").value_or("");
    if (hosts_.empty() && std::atoi(nodes.c_str()) > 1)
      usage_error("this job of Slurm has several hosts, but --ranks means slots on this host",
                  fmt::format("SLURM_JOB_NUM_NODES is {}", nodes),
                  "name the hosts: --hosts n0:2,n1:2; scontrol show hostnames lists them");
    if (!hosts_.empty()) {
      request_.hosts = launch::read_hosts(hosts_);
      request_.slots = 0;
      for (const auto& [host, slots] : request_.hosts) request_.slots += slots;
    }
    if (request_.slots == 0) request_.slots = ranks_of_layout();
    if (request_.fewest > request_.slots)
      usage_error("--min-ranks is larger than the number of slots",
                  fmt::format("min-ranks is {}, but there are {} slots", request_.fewest, request_.slots),
                  "give fewer --min-ranks or more --ranks");
    require_writable(request_.run_dir);
    program_.emplace(words_, request_.slots);
    signals_.emplace(std::initializer_list<int>{SIGUSR2});
  }

  int run(Session& session) override {
    // In a job of Slurm, the keepers are steps that last as long as the launch. Without this variable, the step of the ranks
    // waits until they have ended; Open MPI's mpirun also starts steps.
    if (!request_.hosts.empty()) setenv("SLURM_OVERLAP", "1", 0);
    return launch::Supervisor(session, request_, *program_, *signals_).run();
  }

 private:
  // The number of ranks of --layout among the words of the run; the layout must name all its sizes.
  std::int64_t ranks_of_layout() const {
    for (std::size_t i = 0; i < words_.size(); ++i) {
      const bool apart = words_[i] == "--layout" && i + 1 < words_.size();
      if (!apart && !words_[i].starts_with("--layout=")) continue;
      return train::with_least_sizes(parse_layout(apart ? words_[i + 1] : words_[i].substr(9), 0)).ranks();
    }
    usage_error("launch needs a number of ranks", "neither --ranks, --hosts nor a --layout is given",
                fmt::format("{} launch --ranks 4 -- train …", program()));
  }

  launch::Request request_{.slots = 0, .run_dir = "runs"};
  std::string hosts_;
  std::vector<std::string> words_;
  std::optional<launch::TrainingRun> program_;
  std::optional<Signals> signals_;
};

class Resize final : public Command {
 public:
  void declare(Options& o) override {
    o.add_positional("words", words_, "the number of ranks, and the folder of the launch; default: runs/latest")
        .words("N RUN");
  }

  void check(const Launch&) override {
    const bool is_number = !words_.empty() && !words_[0].empty() && words_[0].size() < 9 &&
                           std::ranges::all_of(words_[0], [](char c) { return c >= '0' && c <= '9'; });
    if (!is_number || words_.size() > 2)
      usage_error("resize needs a number of ranks, and then at most one folder",
                  words_.empty() ? "nothing was given" : fmt::format("given: {}", join(words_, " ")),
                  fmt::format("{} resize 4 runs/latest", program()));
    ranks_ = std::stoll(words_[0]);
    if (words_.size() == 2) folder_ = words_[1];
  }

  int run(Session&) override {
    const std::string answer = launch::ask_supervisor(folder_, fmt::format("resize {}", ranks_));
    if (answer.starts_with("error: ")) {
      const std::vector<std::string> lines = split(answer.substr(7), '\n');
      throw Error(Exit::usage, lines[0], {lines.begin() + 1, lines.end()});
    }
    fmt::print("{}\n", answer);
    return 0;
  }

 private:
  std::vector<std::string> words_;
  std::string folder_ = "runs/latest";
  std::int64_t ranks_ = 0;
};

}  // namespace

std::unique_ptr<Command> make_launch() { return std::make_unique<LaunchCommand>(); }
std::unique_ptr<Command> make_resize() { return std::make_unique<Resize>(); }

}  // namespace chorale
