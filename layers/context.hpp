// Every layer receives a Context in addition to its input. The Context specifies where to compute, how to sum, which tokens
// of the global batch to process and where to keep tensors for the backward pass. A context is passed as an argument; there
// is no global context.
#pragma once
#include <functional>
#include <map>
#include <vector>

#include "layers/expert_exchange.hpp"
#include "layers/kept_inputs.hpp"
#include "layers/parameter.hpp"
#include "layers/sequence_rows.hpp"
#include "layers/shard_boundary.hpp"
#include "layers/tape.hpp"
#include "src/math/dropout.hpp"

namespace chorale {

// The key-value cache of one sample, for generation: [capacity, groups, 2, width] per attention layer. Each layer on this
// rank creates its tensor at the first token, so a rank stores only the heads and layers that it computes.
struct KeyValueCache {
  std::map<std::size_t, Tensor> layers;  // key: the layer's index in the complete model
  std::int64_t capacity = 0;
  std::int64_t past = 0;  // tokens already in the cache
  std::int64_t next = 0;  // number of tokens in this pass, over all ranks that split the sequence
};

struct ChoiceCounts;    // layers/choice_counts.hpp
class RouterBalance;    // layers/router_balance.hpp
class AttentionScheme;  // layers/attention_scheme.hpp
struct AttentionWork;   // layers/attention_work.hpp
class TokenCut;         // parallel/layout/cut.hpp

// The part of a context that is the same for all micro-batches of a run.
struct RunContext {
  Queue queue;
  Allocator& memory;
  Numerics& numerics;
  DType compute = DType::f32;
  std::uint64_t seed = 0;                                     // the dropout masks depend on seed and Context::step
  const ShardBoundary* boundary = &ShardBoundary::alone();    // connects the ranks that share the layers
  const ExpertExchange* exchange = &ExpertExchange::alone();  // connects the ranks that split the experts
  // Connects the ranks that split the tokens of a sequence. If the pointer is null, this rank has complete sequences.
  const AttentionScheme* attention = nullptr;
  AttentionWork* attention_work = nullptr;                 // null if the work is not measured
  const SequenceRows* sequences = &SequenceRows::alone();  // connects the ranks that split tokens, for all layers except
                                                           // attention
  const RouterBalance* balance = nullptr;                  // expert biases and choice counts of the previous step; null if
                                                           // the model uses neither
  std::function<void()> after_layer = {};                  // called between layers, so that a strategy can progress its
                                                           // communication
};

// The context of one micro-batch.
struct Context : RunContext {
  Tokens tokens = {};                  // all rows of the micro-batch: the rows of matrix products and attention
  Tokens stream = {};                  // this rank's rows of the residual stream: fewer with sequence parallelism
  Tensor places = {}, positions = {};  // i32 [rows], for the rows of `tokens`: each token's index in its sequence and in its
                                       // document. `stream` uses some of these rows. Both are empty if no layer needs them
  Tensor query_places = {};            // indices, in the sequence, of the tokens that AttentionScheme::query_tokens lists;
                                       // empty if it lists none, or if these indices are consecutive
  Tensor query_positions = {};         // indices of the same tokens in their documents; empty if they equal query_places
  Tensor targets = {};  // i32 [rows]: the next token of each row, or −1 if the row does not count in the loss
  std::uint32_t step = 0;
  bool training = true;
  double loss_scale = 1;
  Tensor loss = {};              // [1]: the head adds the losses of all rows to this element
  std::int64_t step_tokens = 1;  // number of tokens in the step on all ranks; bounds the number of addends in `loss`
  const std::vector<TokenCut>* cuts = nullptr;  // how context ranks split each sample; null if they split all samples in the
                                                // same way

  Tape* tape = nullptr;               // null if no backward pass follows
  KeptInputs* kept_inputs = nullptr;  // where recomputation keeps block inputs; null if it keeps them on the tape
  // Expert layers add their tokens' choices to these counts. If the pointer is null, choices are not counted, because this
  // is not the first forward pass of a training step.
  ChoiceCounts* choices = nullptr;
  // Used for generation: the tokens of this pass follow the cached tokens, and the head returns the logits of the next
  // token.
  KeyValueCache* cache = nullptr;
  // A pipeline schedule such as ZB-H1 can defer weight gradients, because no other layer needs weight gradients.
  // weight_gradient() then appends the computation to this list. If the pointer is null, weight_gradient() computes the
  // gradient immediately.
  std::vector<std::function<void()>>* deferred_weight_gradients = nullptr;
  std::function<void(Parameter&)> on_gradient_ready = {};
  // A callback for finding the origin of a NaN. The arguments of the callback are a kind ("output", "input gradient"), the
  // layer's name and the tensor. If the callback is empty, layers skip the call.
  std::function<void(const char*, const std::string&, const Tensor&)> inspect = {};

  Tensor tensor(Shape shape, Category category = Category::activations) {
    return typed(std::move(shape), compute, category);
  }
  Tensor typed(Shape shape, DType dtype, Category category = Category::activations) {
    return Tensor(memory, std::move(shape), dtype, category);
  }
  Tensor zeros(Shape shape, DType dtype);  // workspace
  // Returns x in another type; x itself if it has this type already.
  Tensor as(DType dtype, const Tensor& x, Category category = Category::workspace);
  DType statistics() const { return compute == DType::f64 ? DType::f64 : DType::f32; }
  Dropout dropout(double probability, std::uint32_t site, const Tokens& rows) const {
    return {.probability = training ? probability : 0, .random = {seed, step, site}, .tokens = rows};
  }
  // Converts a completed sum over shards or ranks from the type of partial sums to the compute type.
  Tensor settled(const Tensor& sum, const SumSite& site) {
    if (sum.dtype() == compute) return sum;
    const Tensor y = tensor(sum.shape());
    numerics.settle(sum, y, site, queue);
    return y;
  }
  bool selective() const { return tape && tape->selective(); }
  // A sequence is divided into leaves of this many tokens; the last leaf can be shorter. Weight gradients, and the gradients
  // of keys and values, are summed in floating point within a leaf. Exact numerics then adds the leaves' sums as integers.
  // The results of exact numerics therefore depend on the leaf length.
  Leaves leaves() const { return {leaves_of(tokens.sequence).length, tokens.tokens}; }
  // Returns the default leaves. The leaf length is the largest power of two that is at most 256 and at most an eighth of the
  // sequence length. The minimum is 1.
  static Leaves leaves_of(std::int64_t sequence);

  template <class Work>
  void weight_gradient(Work work) {
    if (deferred_weight_gradients)
      deferred_weight_gradients->emplace_back(std::move(work));
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
