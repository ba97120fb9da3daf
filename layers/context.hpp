// What a layer is told besides its input: where to compute, how sums are made, which tokens of the global batch these are, what to keep.
// Passed, never reached for.
#pragma once
#include <functional>
#include <map>
#include <vector>

#include "layers/joint.hpp"
#include "layers/parameter.hpp"
#include "layers/tape.hpp"
#include "src/math/dropout.hpp"

namespace chorale {

// Keys and values of one sample's tokens so far, for generation: [1, capacity, groups, width] of each attention layer that is here, which
// makes its own at the first token: so a rank has those of its heads and of its stage.
struct KeyValueCache {
  struct Layer {
    Tensor keys, values;
  };
  std::map<std::size_t, Layer> layers;  // by number, in the whole model
  std::int64_t capacity = 0;
  std::int64_t past = 0;  // tokens that are in it
};

struct Context {
  Queue queue;
  Allocator& memory;
  Numerics& numerics;
  DType compute = DType::f32;

  Tokens tokens = {};      // all rows of the micro-batch, which products and attention take
  Tokens stream = {};      // the rows of the residual stream that are here
  Tensor targets = {};     // i32 [rows]: the next token of each; −1 is not counted
  std::uint64_t seed = 0;  // with step: of dropout
  std::uint32_t step = 0;
  bool training = true;
  double loss_scale = 1;
  Tensor loss = {};              // [1]: what the head adds the rows' losses to
  std::int64_t step_tokens = 1;  // of the whole step, on all ranks: how much that sum may grow

  const Joint* joint = &Joint::alone();  // with the ranks that share the layers

  Tape* tape = nullptr;            // null: there will be no backward pass
  KeyValueCache* cache = nullptr;  // of generation: the tokens follow those in it, and the head gives the logits of the next
  // Gradients of weights need nobody's answer: a strategy may put them off. Null: they are computed at once.
  std::vector<std::function<void()>>* put_off = nullptr;
  std::function<void(Parameter&)> on_gradient_ready = {};
  std::function<void()> after_layer = {};  // what a strategy has under way goes on between the layers
  // Called with what ("output", "input gradient"), the layer's name and the tensor: to find where a NaN was born. Null: nobody looks.
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
  // A sum that is whole now, in the type that is computed with.
  Tensor settled(const Tensor& sum, const Site& site) {
    if (sum.dtype() == compute) return sum;
    const Tensor y = tensor(sum.shape());
    numerics.settle(sum, y, site, queue);
    return y;
  }
  bool selective() const { return tape && tape->selective(); }
  // Tokens of one sequence whose weight gradients are summed as plain floats: part of what defines the bits of exact numerics.
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
