#include "parallel/resume.hpp"

#include <fmt/format.h>

namespace chorale {
namespace {

std::map<std::string, std::int64_t> blocks_of(const TrainingOptions& o) {
  if (o.numerics != "exact") return {};
  return {{"leaf", Context::leaf_of(o.shape.sequence)}, {"global batch", o.global_batch}};
}

}  // namespace

std::vector<StateTensor> state_of(Training& training) {
  std::vector<StateTensor> all;
  training.optimizer().each_state([&](const std::string& name, const Parameter& p, const Tensor& tensor) {
    all.push_back({name, p.shape, {.slab = p.slab}, tensor.slice()});
  });
  return all;
}

Metadata metadata_of(Training& training, const std::string& config) {
  const TrainingOptions& o = training.options();
  return {.step = training.steps(),
          .cursor = training.samples(),
          .seed = o.seed,
          .loss_scale = o.scaler.dynamic ? o.scaler.scale : 0,
          .good_steps = o.scaler.good_steps,
          .patience = o.scaler.patience,
          .updates = training.optimizer().steps(),
          .model = o.shape,
          .blocks = blocks_of(o),
          .config = config};
}

void resume(Training& training, const Checkpoint& checkpoint) {
  const Metadata& saved = checkpoint.metadata();
  checkpoint.require_model(training.options().shape);
  if (saved.blocks != blocks_of(training.options()))
    usage_error("the checkpoint was made with other numerics",
                fmt::format("{} is of {} numerics", checkpoint.path().string(), saved.blocks.empty() ? "fast" : "exact"),
                "use the numerics and the global batch it was made with");
  if (saved.seed != training.options().seed)
    usage_error("the checkpoint is of a run with another seed",
                fmt::format("its seed is {}, this run's {}", saved.seed, training.options().seed),
                fmt::format("use --seed {}: the order of the data and the dropout go by it", saved.seed));
  checkpoint.read(state_of(training));
  if (training.scaler().dynamic && saved.loss_scale > 0) {  // f16 may go on from a run that had no scale, and the other way
    training.scaler().scale = saved.loss_scale;
    training.scaler().good_steps = saved.good_steps;
    training.scaler().patience = saved.patience;
  }
  training.optimizer().set_steps(saved.updates);
  training.resume_at(saved.step, saved.cursor);
}

}  // namespace chorale
