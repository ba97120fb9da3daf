// The weights of a model, without the rest of its training state, from a checkpoint or a Hugging Face folder. A rank reads
// its own parts, one MiB at a time, so it needs almost no other memory.
#pragma once
#include <optional>

#include "layers/optimizer.hpp"
#include "parallel/state/checkpoint.hpp"
#include "parallel/state/hugging_face.hpp"

namespace chorale {

class StoredWeights {
 public:
  // Collective among the peers. `path` is a checkpoint or a Hugging Face folder.
  StoredWeights(const std::filesystem::path& path, Allocator& memory, Log& log, const Peers& peers = {});

  const ModelShape& shape() const { return hugging_face_ ? hugging_face_->shape() : checkpoint_->metadata().model; }
  // Fills the values of the parts, converted to their type.
  void read(const std::vector<Owned>& parts, const Queue& queue) const;
  ImportedModel whole() const;

 private:
  Allocator& memory_;
  std::optional<HuggingFaceModel> hugging_face_;
  std::optional<Checkpoint> checkpoint_;
};

// The model's shape from the first readable manifest, without opening the set. Nothing if all are damaged; a usage error if
// nothing is stored there.
std::optional<ModelShape> shape_stored_in(const std::filesystem::path& path);
std::optional<ModelShape> shape_of_checkpoint(const std::filesystem::path& path);

// The weights that the optimizer owns, as targets for `read`. Afterwards call Training::publish, which sends them to the
// replicas.
std::vector<Owned> weights_of(const Optimizer& optimizer);

}  // namespace chorale
