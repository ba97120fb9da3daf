// The weights of a model without the rest of its training: of a checkpoint, of which a rank reads its parts alone, or of a folder of Hugging
// Face's, which comes whole.
#pragma once
#include <optional>

#include "layers/optimizer.hpp"
#include "parallel/checkpoint.hpp"
#include "parallel/hugging_face.hpp"

namespace chorale {

class StoredWeights {
 public:
  // Collective among the peers. From whichever of the two `path` is.
  StoredWeights(const std::filesystem::path& path, Allocator& memory, Log& log, const Peers& peers = {});

  const ModelShape& shape() const { return imported_ ? imported_->shape : checkpoint_->metadata().model; }
  void read(const std::vector<Owned>& parts, const Queue& queue) const;  // into their values, in the type of those
  ImportedModel whole() const;

 private:
  Allocator& memory_;
  std::optional<ImportedModel> imported_;
  std::optional<Checkpoint> checkpoint_;
};

// At a glance, before anything is checked: none where the newest set is damaged. A usage error where nothing is stored.
std::optional<ModelShape> shape_stored_in(const std::filesystem::path& path);

// Of weights that are whole, their parts.
void take_weights(const std::vector<Owned>& parts, const NamedTensors& weights, const Queue& queue);
// Into what the optimizer owns; Training::publish then spreads it.
void take_weights(Optimizer& optimizer, const NamedTensors& weights, const Queue& queue);

}  // namespace chorale
