// `chorale plan` predicts the memory and traffic of a training step on each pipeline stage, for any number of ranks, without
// training. The real code runs on phantom tensors, which have shapes but no bytes.
//
//   build/chorale plan --preset gpt3-175b --layout dp1                       2.5 TiB of model states
//   build/chorale plan --preset gpt3-175b --train-tokens 300e9 --sustained-flops 35e12      288 years on one rank
//   build/chorale plan --preset gpt3-175b --layout dp64.tp8.pp16.z1.sp       8192 ranks, one line per stage
//   build/chorale plan --preset nano --ranks 4 --layout all                  chooses a layout: one line per legal layout
//   build/chorale plan --preset nano --hosts 2,2 --layout dp2.tp2            also shows the bytes that cross hosts
//   build/chorale plan --preset nano-moe --layout dp4.ep4 --routing zipf     the plan if a few experts get most tokens
//   build/chorale plan --preset gpt2 --layout dp1.cp8 --memory-limit 80G --longest-sequence
//
// Each kind of answer is a function in experiments/plan/question.hpp.
#include <fmt/format.h>

#include "experiments/plan/question.hpp"
#include "experiments/plan/wording.hpp"
#include "experiments/train/ds_config.hpp"

namespace chorale {
namespace {

class PlanCommand final : public Command {
 public:
  std::vector<Preset> presets() const override { return train::presets(); }
  std::vector<ForeignConfig> foreign() const override { return {{"ds-config", train::read_ds_config}}; }
  void declare(Options& o) override { asked_.declare(o); }

  void check(const Launch&) override {
    const bool published = !asked_.table.empty();
    if (!published) asked_.settle();
    answer_ = published                               ? plan::published_table(asked_)
              : asked_.search && asked_.system        ? plan::fastest_ways(asked_)
              : asked_.search || asked_.layouts.all() ? plan::all_layouts(asked_)
              : asked_.longest_sequence               ? plan::longest_sequence(asked_)
                                                      : plan::one_layout(asked_);
  }

  int run(Session& session) override {
    for (const std::string& line : session.options.notes()) fmt::print(stderr, "{}\n", line);
    warn();
    return answer_(session);
  }

 private:
  void warn() const {
    const auto& system = asked_.system;
    const auto& limit = asked_.memory_limit;
    if (!system || !limit || static_cast<double>(*limit) <= system->accelerator.memory) return;
    fmt::print(stderr, "warning: --memory-limit is {}, but {} has {}, which is {:g} GB\n",
               plan::words_for_bytes(static_cast<double>(*limit)), system->accelerator.name,
               plan::words_for_bytes(system->accelerator.memory), system->accelerator.memory / 1e9);
  }

  plan::AskedPlan asked_;
  plan::Answer answer_;
};

}  // namespace

std::unique_ptr<Command> make_plan() { return std::make_unique<PlanCommand>(); }

}  // namespace chorale
