// The weights of a model without the rest of its training, of a checkpoint or of a folder of Hugging Face's. A rank reads its own parts,
// a mebibyte at a time: beside them it needs no memory.
#pragma once
#include <optional>

#include "layers/optimizer.hpp"
#include "parallel/state/checkpoint.hpp"
#include "parallel/state/hugging_face.hpp"

namespace chorale {

class StoredWeights {
 public:
  // Collective among the peers. `path` is a checkpoint or a folder of Hugging Face's.
  StoredWeights(const std::filesystem::path& path, Allocator& memory, Log& log, const Peers& peers = {});

  const ModelShape& shape() const { return hugging_face_ ? hugging_face_->shape() : checkpoint_->metadata().model; }
  // Writes into the values of the parts, converted to their type.
  void read(const std::vector<Owned>& parts, const Queue& queue) const;
  ImportedModel whole() const;

 private:
  Allocator& memory_;
  std::optional<HuggingFaceModel> hugging_face_;
  std::optional<Checkpoint> checkpoint_;
};

// At a glance, from the first manifest that can be read: none where all are damaged. A usage error where nothing is stored.
std::optional<ModelShape> shape_stored_in(const std::filesystem::path& path);
std::optional<ModelShape> shape_of_checkpoint(const std::filesystem::path& path);

// The parts of the weights that the optimizer owns, to read into. Training::publish then sends them to the replicas.
std::vector<Owned> weights_of(const Optimizer& optimizer);

}  // namespace chorale
