#include "experiments/train/announcement.hpp"

#include <fmt/format.h>

#include "experiments/train/shape_options.hpp"
#include "layers/gpt.hpp"
#include "parallel/step/stage.hpp"
#include "src/base/text.hpp"

namespace chorale::train {

void announce(RunRecord& run, const TrainingTeam& team, Training& training, const Dataset& data, std::int64_t steps) {
  run.recorder->text("/", "flops_formula", "6 (active parameters - positions) + 6 layers sequence width, per token");
  run.recorder->text("/", "device", team.about_device());
  run.recorder->text("/", "backends", to_string(team.backends()));
  run.recorder->text("/", "layout", to_string(training.mesh().layout()));
  run.recorder->number("train_iters", steps);
  const TrainingOptions& o = training.options();
  const ModelShape& s = o.shape;
  run.log.result(
      "{}: {:.2f} million parameters{} ({} layers, {} wide, {} heads), {} {}, {} sequences of {} a step, {} thread{} a "
      "rank, data: {}",
      to_string(training.mesh().layout()), static_cast<double>(s.parameters()) / 1e6, words_for_active(s), s.layers, s.width,
      s.heads, name_of(o.compute), name_of(o.numerics), o.batch.global, s.sequence, o.kernels.threads,
      o.kernels.threads > 1 ? "s" : "", data.name());
  const Layout& layout = training.mesh().layout();
  const std::int64_t layers = blocks_of_parts(s, training.schedule().parts()).front(), shards = layout.shards();
  const double published =
      static_cast<double>(layers) * published_activation_bytes(s, o.batch.micro, shards, layout.sequence);
  run.log.result(
      "activations of a micro-batch in {} of {} layers{}: {} (published formula, 16 bit, attention scores stored: {})",
      layers, s.layers, shards > 1 ? fmt::format(", on one of {} tensor ranks", shards) : "",
      human_bytes(training.declared_activation_bytes()), human_bytes(static_cast<std::int64_t>(published)));
  if (data.floor() <= 0) return;
  run.recorder->numbers("/", "loss_floor", {}, std::vector{data.floor()}, "1",
                        "the loss cannot fall below it, nats per token");
  run.log.result("the loss cannot fall below {:.4f}, the entropy of the language", data.floor());
}

}  // namespace chorale::train
