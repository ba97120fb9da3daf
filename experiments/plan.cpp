// `chorale plan`: what a step would ask of every kind of rank, before anybody has the machine for it. The real code runs on
// tensors that have shapes and no bytes.
//
//   build/chorale plan --preset gpt3-175b --layout dp1                       2.8 TB of model states
//   build/chorale plan --preset gpt3-175b --layout dp64.tp8.pp16.z1.sp       8192 ranks, one line a stage
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "collectives/backends/backends.hpp"
#include "experiments/command.hpp"
#include "experiments/train/ds_config.hpp"
#include "experiments/train/flags.hpp"
#include "experiments/train/megatron_flags.hpp"
#include "experiments/train/team.hpp"
#include "src/base/error.hpp"
#include "src/base/host.hpp"
#include "src/base/text.hpp"
#include "src/base/text_table.hpp"

namespace chorale {
namespace {

std::string decimal_bytes(std::int64_t bytes) {  // as papers count: 2.8 TB
  constexpr const char* units[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1000 && unit + 1 < std::size(units)) value /= 1000, ++unit;
  return bytes < 0 ? "?" : fmt::format("{:.{}f} {}", value, unit > 0 ? 2 : 0, units[unit]);
}

class PlanCommand final : public Command {
 public:
  std::vector<Preset> presets() const override { return train::presets(); }
  std::vector<ForeignConfig> foreign() const override { return {{"ds-config", train::read_ds_config}}; }

  void declare(Options& o) override {
    flags_.declare(o);
    layout_flags_.declare(o);
    o.section("the plan");
    o.add("ranks", ranks_,
          "of the world that is planned for; 0: what the layout says, with one replica where it leaves dp out")
        .range(0, 1e7);
    o.add("format", format_, "of the tables").one_of(TextTable::formats());
    o.add_words(train::megatron_flags());
  }

  void check(const Launch&) override {
    const Layout asked = layout_flags_.asked();
    const std::int64_t one_replica = asked.shards() * asked.stages();  // where dp is left out, and the world
    const std::int64_t world = ranks_ ? ranks_ : std::max<std::int64_t>(asked.replicas(), 1) * one_replica;
    const train::ParallelChoice choice = layout_flags_.choice(flags_.limits(world));
    request_ = {flags_.training(1, choice.layout), choice.layout, choice.backends, choice.algorithms};
    layout_flags_.complete(request_.options);
    require_fits(request_.layout, flags_.limits(request_.options, world));
    assume();
  }

  int run(Session& session) override {
    for (const std::string& line : session.options.notes()) fmt::print(stderr, "{}\n", line);
    const Layout& l = request_.layout;
    TextTable memory({"stage", "parameters", "params", "grads", "optimizer", "states", "activations", "comm", "workspace",
                      "data", "peak", "TFLOP"});
    TextTable traffic({"stage", "axis", "operation", "calls", "bytes"});
    for (std::int64_t stage = 0; stage < l.stages(); ++stage) {
      const RankPlan plan = plan_rank(request_, rank_of_stage(l, stage));
      add_memory(memory, stage, plan);
      add_traffic(traffic, stage, plan);
    }
    const TrainingOptions& o = request_.options;
    if (format_ == "text")
      fmt::print(
          "{}: {} ranks, {:.2f} million parameters in {}, {} sequences of {} a step, {} at once\n"
          "bubble {:.2f} %, if stages take as long as their arithmetic\n\n"
          "replica 0, shard 0 of each stage: bytes held after a step (states) and, of the others, at most\n",
          to_string(l), l.ranks(), static_cast<double>(o.shape.parameters()) / 1e6, name_of(o.compute), o.global_batch,
          o.shape.sequence, o.micro_batch, 100 * planned_bubble(o, l));
    fmt::print("{}", memory.print(format_));
    if (format_ == "text" && traffic.rows() > 0) fmt::print("\nsent by that rank in a step{}\n", assumed_);
    if (traffic.rows() > 0) fmt::print("{}", traffic.print(format_));
    return 0;
  }

 private:
  // What a run would find out, as far as it can be known here; what is left to assume is said.
  void assume() {
    const std::string here = best_backend(false, joins_here);
    bool backend_assumed = false;
    for (auto& [axis, backend] : request_.backends)
      if (backend == "auto") backend = here, backend_assumed = true;
    if (backend_assumed) assumed_ += fmt::format("; by {}, if all ranks are on one host like this one (--backend)", here);

    if (std::none_of(request_.algorithms.begin(), request_.algorithms.end(),
                     [](const auto& a) { return a.second == "auto"; }))
      return;
    const std::filesystem::path file = default_tuning_file();
    const bool tuned = !file.empty() && std::filesystem::exists(file);
    const TuningTable table = tuned ? read_tuning(file) : TuningTable{};
    assumed_ += table.machine == machine_signature()
                    ? "; auto chooses by what `chorale tune` measured here, and else by the cost model"
                    : "; auto chooses by the cost model, as it would where `chorale tune` was never run";
    request_.selector = std::make_shared<const Selector>(table);
  }

  static void add_memory(TextTable& table, std::int64_t stage, const RankPlan& plan) {
    const auto held = [&](Category c) { return plan.held[static_cast<std::size_t>(c)]; };
    const auto peak = [&](Category c) { return decimal_bytes(plan.peak[static_cast<std::size_t>(c)]); };
    const std::int64_t states = held(Category::params) + held(Category::grads) + held(Category::optimizer);
    table.add({std::to_string(stage), std::to_string(plan.parameters), decimal_bytes(held(Category::params)),
               decimal_bytes(held(Category::grads)), decimal_bytes(held(Category::optimizer)), decimal_bytes(states),
               peak(Category::activations), peak(Category::comm), peak(Category::workspace), peak(Category::data),
               decimal_bytes(plan.peak_bytes), fmt::format("{:.4g}", plan.flops / 1e12)});
  }

  static void add_traffic(TextTable& table, std::int64_t stage, const RankPlan& plan) {
    for (const auto& [axis, account] : plan.axes)
      for (std::size_t i = 0; i < operations; ++i)
        if (const Account::Entry& entry = account.entries[i]; entry.calls > 0)
          table.add(
              {std::to_string(stage), axis, operation_name(i), std::to_string(entry.calls), decimal_bytes(entry.bytes)});
  }

  train::Flags flags_;
  train::LayoutFlags layout_flags_;
  std::int64_t ranks_ = 0;
  std::string format_ = "text";
  PlanRequest request_;
  std::string assumed_;
};

}  // namespace

std::unique_ptr<Command> make_plan() { return std::make_unique<PlanCommand>(); }

}  // namespace chorale
