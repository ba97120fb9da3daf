#include "parallel/weights.hpp"

#include <fmt/format.h>

#include "parallel/checkpoint_sets.hpp"
#include "parallel/manifest.hpp"
#include "src/base/error.hpp"
#include "src/math/cast.hpp"
#include "src/memory/on_host.hpp"

namespace chorale {
namespace {

namespace fs = std::filesystem;

bool is_hugging_face(const fs::path& path) { return fs::exists(path / "config.json"); }

const Tensor& find(const NamedTensors& weights, const std::string& name, std::int64_t count) {
  const auto found = weights.find(name);
  require(found != weights.end() && found->second.count() == count, "the weights hold no {} of {} elements", name, count);
  return found->second;
}

Part part_of(const Owned& owned) { return {.slab = owned.parameter->slab, .first = owned.first, .count = owned.count}; }

}  // namespace

StoredWeights::StoredWeights(const fs::path& path, Allocator& memory, Log& log, const Peers& peers) : memory_(memory) {
  if (is_hugging_face(path))
    imported_ = import_folder(path, memory);
  else
    checkpoint_.emplace(Checkpoint::open(path, log, peers));
}

void StoredWeights::read(const std::vector<Owned>& parts, const Queue& queue) const {
  if (imported_) return take_weights(parts, imported_->tensors, queue);
  std::map<std::string, DType> types;
  for (const StateTensor& stored : checkpoint_->tensors()) types[stored.name] = stored.data.dtype;
  for (const Owned& owned : parts) {
    const Parameter& p = *owned.parameter;
    const Tensor as_stored(memory_, {owned.count}, types[p.name], Category::params);
    checkpoint_->read({{p.name, p.shape, part_of(owned), as_stored.slice()}});
    on_host(owned.value.slice(), Use::write, [&](const Slice& here) { cast(as_stored.slice(), here, queue); });
  }
}

ImportedModel StoredWeights::whole() const {
  if (imported_) return *imported_;
  ImportedModel all{.shape = shape(), .tensors = {}};
  std::vector<StateTensor> wanted;
  for (StateTensor& stored : checkpoint_->tensors()) {
    if (stored.name.find('/') != std::string::npos) continue;  // a moment of the optimizer
    const Tensor tensor(memory_, stored.shape, stored.data.dtype, Category::params);
    all.tensors.emplace(stored.name, tensor);
    wanted.push_back({stored.name, stored.shape, {}, tensor.slice()});
  }
  checkpoint_->read(wanted);
  return all;
}

std::optional<ModelShape> shape_stored_in(const fs::path& path) try {
  if (is_hugging_face(path)) return shape_of_folder(path);
  const fs::path folder = folder_of_sets(path);
  if (fs::exists(folder / "manifest.json")) return read_manifest(folder).metadata.model;
  const std::vector<std::string> names = sets_to_load(folder);
  if (names.empty()) refuse_without_checkpoint(folder);
  return read_manifest(folder / names.front()).metadata.model;
} catch (const Error& error) {
  if (error.exit() == Exit::usage) throw;
  return {};  // damaged: there may be an older one
}

void take_weights(const std::vector<Owned>& parts, const NamedTensors& weights, const Queue& queue) {
  for (const Owned& owned : parts) {
    const Parameter& p = *owned.parameter;
    const Slice whole = find(weights, p.name, elements_of(p.shape)).slice(), mine = owned.value.slice();
    std::vector<std::byte> wide(static_cast<std::size_t>(whole.count * size_of(mine.dtype)));
    cast(whole, {wide.data(), whole.count, mine.dtype}, queue);
    on_host(mine, Use::write, [&](const Slice& here) {
      copy_common(p.shape, size_of(mine.dtype), resolved({}, p.shape), wide, resolved(part_of(owned), p.shape),
                  {static_cast<std::byte*>(here.data), static_cast<std::size_t>(here.bytes())});
    });
  }
}

void take_weights(Optimizer& optimizer, const NamedTensors& weights, const Queue& queue) {
  std::vector<Owned> parts;
  optimizer.each_state([&](const std::string& name, const Owned& owned, const Tensor& tensor) {
    if (name != owned.parameter->name) return;  // a moment
    parts.push_back(owned);
    parts.back().value = tensor;
  });
  take_weights(parts, weights, queue);
}

}  // namespace chorale
