// What a layer receives besides its input: where to compute, how to sum, which tokens of the global batch it has, what to
// keep. It is passed as an argument, never global.
#pragma once
#include <functional>
#include <map>
#include <vector>

#include "layers/parameter.hpp"
#include "layers/shard_boundary.hpp"
#include "layers/tape.hpp"
#include "src/math/dropout.hpp"

namespace chorale {

// Keys and values of one sample's tokens so far, for generation: [1, capacity, groups, width] per attention layer. Each
// layer on this rank creates its own tensors at the first token, so a rank stores only its own heads and stage.
struct KeyValueCache {
  struct Layer {
    Tensor keys, values;
  };
  std::map<std::size_t, Layer> layers;  // key: the layer's index in the whole model
  std::int64_t capacity = 0;
  std::int64_t past = 0;  // tokens already in the cache
};

struct Context {
  Queue queue;
  Allocator& memory;
  Numerics& numerics;
  DType compute = DType::f32;

  Tokens tokens = {};      // all rows of the micro-batch, as products and attention take them
  Tokens stream = {};      // this rank's rows of the residual stream
  Tensor targets = {};     // i32 [rows]: the next token of each row; −1: not counted
  std::uint64_t seed = 0;  // with `step`, keys dropout
  std::uint32_t step = 0;
  bool training = true;
  double loss_scale = 1;
  Tensor loss = {};              // [1]: the head adds the rows' losses here
  std::int64_t step_tokens = 1;  // tokens of the whole step on all ranks: an upper bound for that sum

  const ShardBoundary* boundary = &ShardBoundary::alone();  // connects the ranks that share the layers

  Tape* tape = nullptr;  // null: no backward pass follows
  // For generation: the tokens follow those in the cache, and the head returns the next logits.
  KeyValueCache* cache = nullptr;
  // Weight gradients can wait, since no other layer needs them: a strategy may defer them. Null: they are computed at once.
  std::vector<std::function<void()>>* put_off = nullptr;
  std::function<void(Parameter&)> on_gradient_ready = {};
  std::function<void()> after_layer = {};  // lets a strategy progress its communication between layers
  // Called with a kind ("output", "input gradient"), the layer's name and the tensor, to find the origin of a NaN. Null:
  // not called.
  std::function<void(const char*, const std::string&, const Tensor&)> inspect = {};

  Tensor tensor(Shape shape, Category category = Category::activations) {
    return typed(std::move(shape), compute, category);
  }
  Tensor typed(Shape shape, DType dtype, Category category = Category::activations) {
    return Tensor(memory, std::move(shape), dtype, category);
  }
  DType statistics() const { return compute == DType::f64 ? DType::f64 : DType::f32; }
  Dropout dropout(double probability, std::uint32_t site, const Tokens& rows) const {
    return {.probability = training ? probability : 0, .random = {seed, step, site}, .tokens = rows};
  }
  // The value of a sum that is now complete, in the compute type.
  Tensor settled(const Tensor& sum, const SumSite& site) {
    if (sum.dtype() == compute) return sum;
    const Tensor y = tensor(sum.shape());
    numerics.settle(sum, y, site, queue);
    return y;
  }
  bool selective() const { return tape && tape->selective(); }
  // Tokens of a sequence whose weight gradients are summed in floats. This number is part of what defines the bits of
  // exact numerics.
  std::int64_t leaf() const { return leaf_of(tokens.sequence); }
  static std::int64_t leaf_of(std::int64_t sequence);  // the largest divisor up to 256

  template <class Work>
  void weight_gradient(Work work) {
    if (put_off)
      put_off->emplace_back(std::move(work));
    else
      work();
  }
  void ready(Parameter& parameter) const {
    if (on_gradient_ready) on_gradient_ready(parameter);
  }
  void layer_is_done() const {
    if (after_layer) after_layer();
  }
  void look(const char* what, const std::string& layer, const Tensor& tensor) const {
    if (inspect) inspect(what, layer, tensor);
  }
};

}  // namespace chorale
