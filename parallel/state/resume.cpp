#include "parallel/state/resume.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "src/base/text.hpp"

namespace chorale {
namespace {

// The version of the rules by which exact numerics computes sums. Sums are computed per leaf (a fixed number of tokens) and
// then added. In version 2, gradients of keys and values are also summed per leaf, and the last leaf of a sequence can be
// short.
constexpr std::int64_t version_of_sums = 2;

std::map<std::string, std::int64_t> blocks_of(const TrainingOptions& o) {
  if (o.numerics != NumericsKind::exact) return {};
  return {
      {"version", version_of_sums}, {"leaf", Context::leaves_of(o.shape.sequence).length}, {"global batch", o.batch.global}};
}

// The rounding of exact numerics depends on these sizes, so the sizes must be the same as in the run that saved the
// checkpoint.
void require_blocks(const Checkpoint& checkpoint, const TrainingOptions& options) {
  const auto &saved = checkpoint.metadata().blocks, mine = blocks_of(options);
  const std::string path = checkpoint.path().string();
  if (saved.empty() != mine.empty())
    usage_error("the checkpoint was made with other numerics",
                fmt::format("{} was made with {} numerics, this run uses {}", path, saved.empty() ? "fast" : "exact",
                            name_of(options.numerics)),
                fmt::format("use --numerics {}", saved.empty() ? "fast" : "exact"));
  if (!saved.empty() && !saved.contains("version"))
    usage_error("the checkpoint was made by an older version of exact numerics, which rounds other sums",
                fmt::format("{}: version 1, this program's {}", path, version_of_sums),
                "continue it with the program that saved it, or begin with its weights: chorale export, then --load-hf");
  for (const auto& [key, value] : mine)
    if (const auto theirs = saved.find(key); theirs == saved.end() || theirs->second != value)
      usage_error(fmt::format("the checkpoint was made with another {}, which sets the rounding of exact numerics", key),
                  fmt::format("{}: its {} is {}, this run's {}", path, key,
                              theirs == saved.end() ? "unknown" : std::to_string(theirs->second), value),
                  fmt::format("use the {} it was made with", key));
}

StateTensor part_of(Training& training, const std::string& name, const Owned& owned, const Tensor& tensor) {
  const Parameter& p = *owned.parameter;
  const Mesh& mesh = training.mesh();
  const AxisTable& axes = *mesh.layout().axes;
  const AxisSet along = training.buckets().copied_along(p);
  std::vector<std::string> copy;
  for (std::size_t row = 0; along != 0 && row < axes.size(); ++row)
    if (contains(along, row)) copy.push_back(fmt::format("{}{}", axes[row].name, mesh.place()[row]));
  return {name, p.shape, {.shard = p.shard, .first = owned.first, .count = owned.count}, tensor.slice(), join(copy, ".")};
}

// A run with delayed updates also saves its values, which are older than the master weights. If a checkpoint has no values,
// the resumed run begins with the master weights. Returns whether the checkpoint has values; if not, removes them from
// `wanted`.
bool has_values(std::vector<StateTensor>& wanted, const Checkpoint& checkpoint) {
  const auto is_value = [](const StateTensor& t) { return t.name.starts_with("value/"); };
  const auto first = std::ranges::find_if(wanted, is_value);
  if (first == wanted.end()) return false;
  for (const StateTensor& saved : checkpoint.tensors())
    if (saved.name == first->name && saved.data.dtype == first->data.dtype) return true;
  std::erase_if(wanted, is_value);
  return false;
}

}  // namespace

std::vector<StateTensor> state_of(Training& training) {
  training.settle_update();
  std::vector<StateTensor> all;
  training.optimizer().each_state([&](const std::string& name, const Owned& owned, const Tensor& tensor) {
    all.push_back(part_of(training, name, owned, tensor));
  });
  for (const ParameterPointer& p : training.balance().state())
    all.push_back(part_of(training, p->name, {p, 0, p->value.count(), p->value, {}}, p->value));
  return all;
}

std::vector<StateTensor> gradients_of(Training& training) {
  std::vector<StateTensor> all;
  for (const Owned& owned : training.buckets().owned())
    all.push_back(part_of(training, "gradient/" + owned.parameter->name, owned, owned.gradient));
  return all;
}

std::vector<StateTensor> state_to_save(Training& training) {
  std::vector<StateTensor> all = state_of(training);
  std::erase_if(all, [](const StateTensor& t) { return !t.copy.empty(); });
  return all;
}

Peers peers_of(const Mesh& mesh) {
  Axis& world = mesh.world();
  if (world.size() == 1) return {};
  return {world.rank(),
          world.size(),
          [&world](const std::string& mine) { return world.exchange(mine); },
          [&world] { world.poll(); },
          [&world](const std::vector<ByteMessage>& sent, const std::vector<ByteMessage>& received) {
            world.swap(sent, received);
          },
          world.hosts()};
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
  require_blocks(checkpoint, training.options());
  if (saved.seed != training.options().seed)
    usage_error("the checkpoint is from a run with another seed",
                fmt::format("its seed is {}, this run's {}", saved.seed, training.options().seed),
                fmt::format("use --seed {}: it determines the data order and the dropout", saved.seed));
  std::vector<StateTensor> wanted = state_of(training);
  const bool reads_values = has_values(wanted, checkpoint);
  checkpoint.read(wanted);
  // A run with a loss scale can resume from the checkpoint of a run without a loss scale, and vice versa.
  if (training.scaler().dynamic && saved.loss_scale > 0) {
    training.scaler().scale = saved.loss_scale;
    training.scaler().good_steps = saved.good_steps;
    training.scaler().patience = saved.patience;
  }
  training.optimizer().set_steps(saved.updates);
  training.resume_at(saved.step, saved.cursor, reads_values);
}

}  // namespace chorale
