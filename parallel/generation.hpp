// Tokens from a model, one after the other. Keys and values of what has been read are kept, so that a new token costs one row; when the model's
// context is full, its newer half is read again and the older forgotten.
#pragma once
#include <functional>
#include <vector>

#include "layers/gpt.hpp"
#include "parallel/sampling.hpp"

namespace chorale {

class Generator {
 public:
  Generator(Model& model, Allocator& memory, Numerics& numerics, DType compute, const Queue& queue);

  // `on_token` sees each token as it comes, and ends the generation by returning false.
  std::vector<std::int32_t> generate(const std::vector<std::int32_t>& prompt, std::int64_t count, const Sampling& sampling,
                                     const std::function<bool(std::int32_t)>& on_token);
  // Logits of the token after `tokens`, which follow what was read before.
  std::vector<float> read(const std::vector<std::int32_t>& tokens);
  void forget() { cache_.past = 0; }

 private:
  Model& model_;
  Allocator& memory_;
  Numerics& numerics_;
  DType compute_;
  Queue queue_;
  KeyValueCache cache_;
};

}  // namespace chorale
