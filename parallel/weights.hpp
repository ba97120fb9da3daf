// The weights of a model without the rest of its training: from a checkpoint or from a folder of Hugging Face's, into a model or an optimizer.
#pragma once
#include "layers/gpt.hpp"
#include "layers/optimizer.hpp"
#include "parallel/checkpoint.hpp"
#include "parallel/hugging_face.hpp"

namespace chorale {

ImportedModel weights_of(const Checkpoint& checkpoint, Allocator& memory);
// From whichever of the two `path` is.
ImportedModel load_weights(const std::filesystem::path& path, Allocator& memory, Log& log);

// A model that computes in `compute` with these weights, and cannot be trained.
Model model_of(const ImportedModel& weights, Allocator& memory, DType compute, const Queue& queue);
// Into what the optimizer owns; Training::publish then spreads it.
void take_weights(Optimizer& optimizer, const NamedTensors& weights, const Queue& queue);

}  // namespace chorale
