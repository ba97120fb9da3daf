#include "parallel/state/stored_weights.hpp"

#include "parallel/state/checkpoint_sets.hpp"
#include "parallel/state/manifest.hpp"
#include "src/base/text.hpp"
#include "src/math/cast.hpp"
#include "src/memory/on_host.hpp"

namespace chorale {
namespace {

namespace fs = std::filesystem;

bool is_hugging_face(const fs::path& path) { return fs::exists(path / "config.json"); }

constexpr std::int64_t bytes_at_once = 1 << 20;

}  // namespace

StoredWeights::StoredWeights(const fs::path& path, Allocator& memory, Log& log, const Peers& peers) : memory_(memory) {
  if (is_hugging_face(path))
    hugging_face_.emplace(path);
  else
    checkpoint_.emplace(Checkpoint::open(path, log, peers));
}

void StoredWeights::read(const std::vector<Owned>& parts, const Queue& queue) const {
  std::map<std::string, DType> types;
  if (checkpoint_)
    for (const StateTensor& stored : checkpoint_->tensors()) types[stored.name] = stored.data.dtype;
  const Tensor buffer(memory_, {bytes_at_once}, DType::u8, Category::params);
  for (const Owned& owned : parts) {
    const Parameter& p = *owned.parameter;
    const DType dtype = hugging_face_ ? hugging_face_->dtype(p.name) : types[p.name];
    const std::int64_t most = bytes_at_once / size_of(dtype);
    for (std::int64_t done = 0; done < owned.count; done += most) {
      const std::int64_t count = std::min(most, owned.count - done);
      const Slice stored{buffer.slice().data, count, dtype};
      const Part part{.shard = p.shard, .first = owned.first + done, .count = count};
      if (hugging_face_)
        hugging_face_->read(p.name, p.shape, part,
                            {static_cast<std::byte*>(stored.data), static_cast<std::size_t>(stored.bytes())});
      else
        checkpoint_->read({{p.name, p.shape, part, stored}});
      on_host(owned.value.slice().narrow(done, count), Use::write, [&](const Slice& here) { cast(stored, here, queue); });
    }
    if (hugging_face_) hugging_face_->forget(p.name);
  }
}

ImportedModel StoredWeights::whole() const {
  if (hugging_face_) return whole_of(*hugging_face_, memory_);
  ImportedModel all{.shape = shape(), .tensors = {}};
  std::vector<StateTensor> wanted;
  for (StateTensor& stored : checkpoint_->tensors()) {
    if (stored.name.find('/') != std::string::npos) continue;  // "moment1/…": a moment of the optimizer, not a weight
    const Tensor tensor(memory_, stored.shape, stored.data.dtype, Category::params);
    all.tensors.emplace(stored.name, tensor);
    wanted.push_back({stored.name, stored.shape, {}, tensor.slice()});
  }
  checkpoint_->read(wanted);
  return all;
}

ModelShape shape_stored_in(const fs::path& path) {
  return is_hugging_face(path) ? shape_of_folder(path) : shape_of_checkpoint(path);
}

Metadata metadata_of_checkpoint(const fs::path& path) {
  const fs::path folder = folder_of_sets(path);
  const std::vector<std::string> names =
      fs::exists(folder / "manifest.json") ? std::vector<std::string>{"."} : sets_to_load(folder);
  if (names.empty()) refuse_without_checkpoint(folder);
  std::string trouble;
  for (const std::string& name : names) try {
      return read_manifest(folder / name).metadata;
    } catch (const Error& error) {
      if (error.exit() == Exit::usage) throw;  // after any other error, an older set is tried, which has the same model
      if (trouble.empty()) trouble = trim(split(error.what(), '\n').at(1));
    }
  refuse_damaged(names.size(), trouble);
}

ModelShape shape_of_checkpoint(const fs::path& path) { return metadata_of_checkpoint(path).model; }

std::vector<Owned> weights_of(const Optimizer& optimizer) {
  std::vector<Owned> weights;
  optimizer.each_state([&](const std::string& name, const Owned& owned, const Tensor& tensor) {
    if (name != owned.parameter->name) return;  // a moment
    weights.push_back(owned);
    weights.back().value = tensor;
  });
  return weights;
}

}  // namespace chorale
