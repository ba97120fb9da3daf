#include "experiments/train/keeping.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "parallel/state/checkpoint_sets.hpp"
#include "parallel/state/resume.hpp"
#include "src/base/available_memory.hpp"
#include "src/base/text.hpp"

namespace chorale::train {
namespace {

// The contents of the environment variable: the name of the launch's keeper, and the number of this start.
struct Kept {
  std::string name;
  std::int64_t start = 0;
};

Kept kept_here() {
  const std::string text = process_environment()(keeper_variable).value_or("");
  const std::size_t blank = text.rfind(' ');
  return blank == std::string::npos ? Kept{} : Kept{text.substr(0, blank), std::atoll(text.c_str() + blank)};
}

}  // namespace

void Keeping::declare(Options& o) {
  o.add("snapshot-interval", interval_,
        "steps between snapshots in the memory of the host, from which chorale launch continues after a death; 0: never")
      .range(0, 1e9)
      .changes(Effect::speed);
}

void Keeping::check() const {
  if (interval_ > 0 && kept_here().name.empty())
    usage_error("--snapshot-interval needs a keeper of snapshots", "this run was not started by chorale launch",
                "start it with chorale launch, which takes a snapshot after every step");
}

std::optional<Checkpoint> Keeping::newest(const std::filesystem::path& path, const Peers& peers, Log& log) const {
  const Kept here = kept_here();
  KeeperLine keeper(here.name);
  const std::vector<std::string> have = peers.exchange(keeper.is_open() ? "yes" : "no");
  if (std::ranges::count(have, "no") > 0) return std::nullopt;  // without a launch, or on several hosts
  return newest_snapshot(keeper, peers.rank == 0 && !path.empty() ? std::max<std::int64_t>(0, newest_saved_step(path)) : 0,
                         peers, log);
}

void Keeping::begin(Session& session, Training& training) {
  if (interval_ == 0) return;
  const Peers peers = peers_of(training.mesh());
  const std::vector<StateTensor> state = state_of(training);
  const SnapshotPlan plan = snapshot_plan(state, peers);
  std::int64_t needed = 0;  // by the ranks of this host
  const std::vector<std::string> needs = peers.exchange(fmt::format("{}", plan.memory_bytes()));
  for (int rank = 0; rank < peers.size; ++rank)
    if (peers.share_host(rank, peers.rank)) needed += std::atoll(needs[static_cast<std::size_t>(rank)].c_str());
  const std::int64_t room = available_memory();
  const bool fits = needed < room;
  const std::vector<std::string> rooms = peers.exchange(fits ? "yes" : "no");
  if (std::ranges::count(rooms, "no") > 0 &&
      kept_here().start > 1) {  // the keeper also holds the snapshots of the last start
    if (peers.rank == 0) std::fputs("warning: there is no room for further snapshots: only checkpoints are saved\n", stderr);
    return;
  }
  if (!fits)
    usage_error("there is no room for snapshots",
                fmt::format("two snapshots of the ranks on {} need {}; {} is available", host_name(), human_bytes(needed),
                            human_bytes(room)),
                "use --snapshot-interval 0 with launch, fewer ranks per host, or a ZeRO stage");
  if (std::ranges::count(rooms, "no") > 0)
    throw Error(Exit::usage, "there is no room for snapshots", "another rank has too little memory", "see its message");
  const Kept here = kept_here();
  snapshots_ = std::make_unique<Snapshots>(plan, state, here.name, here.start, peers);
  config_ = session.options.toml();
  memory_bytes_ = plan.memory_bytes();
  sent_bytes_ = plan.sent_bytes();
}

void Keeping::stepped(Session& session, RunRecord& run, Training& training) {
  if (!snapshots_ || training.steps() % interval_ != 0) return;
  const double begun = session.clock.seconds();
  snapshots_->take(state_of(training), metadata_of(training, config_));
  if (!run.recorder) return;
  if (!table_) {
    table_ = &run.recorder->table<SaveRow>({.group = "snapshots", .rows = "step"});
    run.recorder->number("snapshot_memory_bytes", memory_bytes_);
    run.recorder->number("snapshot_sent_bytes", sent_bytes_);
  }
  run.recorder->append(
      *table_, SaveRow{.step = training.steps(), .bytes = snapshots_->bytes(), .exposed = session.clock.seconds() - begun});
}

}  // namespace chorale::train
