#include "parallel/weights.hpp"

#include <fmt/format.h>

#include "src/base/error.hpp"
#include "src/math/optimizer_steps.hpp"

namespace chorale {
namespace {

const Tensor& find(const NamedTensors& weights, const std::string& name, std::int64_t count) {
  const auto found = weights.find(name);
  require(found != weights.end() && found->second.count() == count, "the weights hold no {} of {} elements", name, count);
  return found->second;
}

}  // namespace

ImportedModel weights_of(const Checkpoint& checkpoint, Allocator& memory) {
  ImportedModel all{.shape = checkpoint.metadata().model, .tensors = {}};
  std::vector<StateTensor> wanted;
  for (StateTensor& stored : checkpoint.tensors()) {
    if (stored.name.find('/') != std::string::npos) continue;  // a moment of the optimizer
    const Tensor tensor(memory, stored.shape, stored.data.dtype, Category::params);
    all.tensors.emplace(stored.name, tensor);
    wanted.push_back({stored.name, stored.shape, {}, tensor.slice()});
  }
  checkpoint.read(wanted);
  return all;
}

ImportedModel load_weights(const std::filesystem::path& path, Allocator& memory, Log& log) {
  if (std::filesystem::exists(path / "config.json")) return import_folder(path, memory);
  return weights_of(Checkpoint::open(path, log), memory);
}

Model model_of(const ImportedModel& weights, Allocator& memory, DType compute, const Queue& queue) {
  Model model = build_gpt(weights.shape, Remake::none);
  for (const ParameterPointer& p : model.parameters()) {
    p->value = Tensor(memory, p->local_shape(), compute, Category::params);
    cast(find(weights.tensors, p->name, p->value.count()).slice(), p->value.slice(), queue);
  }
  return model;
}

void take_weights(Optimizer& optimizer, const NamedTensors& weights, const Queue& queue) {
  optimizer.each_state([&](const std::string& name, const Owned& owned, const Tensor& tensor) {
    if (name.find('/') != std::string::npos) return;
    const Parameter& p = *owned.parameter;
    const Slice whole = find(weights, name, elements_of(p.shape)).slice(), mine = tensor.slice();
    std::vector<std::byte> wide(static_cast<std::size_t>(whole.count * size_of(mine.dtype)));
    cast(whole, {wide.data(), whole.count, mine.dtype}, queue);
    copy_common(p.shape, size_of(mine.dtype), resolved({}, p.shape), wide,
                resolved({.slab = p.slab, .first = owned.first, .count = owned.count}, p.shape),
                {static_cast<std::byte*>(mine.data), static_cast<std::size_t>(mine.bytes())});
  });
}

}  // namespace chorale
