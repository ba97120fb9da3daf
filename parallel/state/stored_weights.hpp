// Reads the weights of a model from a checkpoint or a Hugging Face folder, without the rest of the training state. A rank
// reads only its parts of the weights, through a 1 MiB buffer.
#pragma once
#include <optional>

#include "layers/optimizer.hpp"
#include "parallel/state/checkpoint.hpp"
#include "parallel/state/hugging_face.hpp"

namespace chorale {

class StoredWeights {
 public:
  // All ranks in `peers` must call this constructor. `path` is a checkpoint or a Hugging Face folder.
  StoredWeights(const std::filesystem::path& path, Allocator& memory, Log& log, const Peers& peers = {});

  const ModelShape& shape() const { return hugging_face_ ? hugging_face_->shape() : checkpoint_->metadata().model; }
  // Fills Owned::value of each part. Stored values are converted to the type of Owned::value.
  void read(const std::vector<Owned>& parts, const Queue& queue) const;
  ImportedModel whole() const;

 private:
  Allocator& memory_;
  std::optional<HuggingFaceModel> hugging_face_;
  std::optional<Checkpoint> checkpoint_;
};

// Returns the shape of the model, from a Hugging Face configuration or from the first readable manifest. Does not read
// checkpoint data. Throws an error if all manifests are damaged, and a usage error if `path` has no model.
ModelShape shape_stored_in(const std::filesystem::path& path);
ModelShape shape_of_checkpoint(const std::filesystem::path& path);
Metadata metadata_of_checkpoint(const std::filesystem::path& path);

// The weights that the optimizer updates on this rank, as targets for `read`. After reading, call Training::publish, which
// updates the values that the layers use, on all ranks.
std::vector<Owned> weights_of(const Optimizer& optimizer);

}  // namespace chorale
