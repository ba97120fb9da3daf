// How ranks that split the tokens of a sequence attend to each other's keys. The attention layer calls these functions
// without knowing what they do. These defaults are for a rank that has whole sequences; the schemes of parallel/context
// override them.
//
//   qkv of this rank's tokens ── forward ──▶ out of this rank's tokens          dout ── backward ──▶ dqkv
//
// A scheme keeps on the tape what its backward pass needs.
#pragma once
#include "layers/layer.hpp"
#include "src/math/attention.hpp"

namespace chorale {

// The arguments of one layer's attention, without its input.
struct AttentionCall {
  const AttentionShape& shape;
  const Dropout& dropout;
  SumSite& keys;  // sums of the gradients of keys and values
};

// The tokens of each sample whose queries this rank computes. Several ranks may share them, each with some of the heads.
struct QueryTokens {
  std::vector<std::int64_t> places;  // ascending; empty: the tokens of the rank's rows
  std::int64_t ranks = 1;
};

class AttentionScheme {
 public:
  virtual ~AttentionScheme() = default;
  virtual Tensor forward(const Tensor& qkv, const AttentionCall& call, Context& context) const;
  virtual Tensor backward(const Tensor& dout, const AttentionCall& call, Context& context) const;
  // For generation: writes the keys and values of all tokens of this pass to the rows of `keys`.
  virtual void collect(const Tensor& qkv, const AttentionShape& shape, const Tensor& keys, Context& context) const;
  virtual Keeps keeps(std::int64_t rows, const AttentionShape& shape, const Context& context) const;

  virtual QueryTokens query_tokens() const { return {}; }

  static const AttentionScheme& alone();

 protected:
  // The queries of this rank's tokens and all keys that they see. By default, qkv has whole sequences.
  virtual AttentionInput input(const Tensor& qkv, const AttentionCall& call, Context& context) const;

  // The kernels, timed.
  static void attend(const AttentionInput& in, const Tensor& out, const Tensor& lse, Context& context);
  static void differentiate(const AttentionInput& in, const Tensor& dout, const Tensor& out, const Tensor& lse,
                            const Tensor& dqkv, const KeyRows& dkeys, SumSite& keys, Context& context);
};

// Copies the keys and values in qkv to the rows of a separate tensor, or back.
void take_keys(const Tensor& qkv, const AttentionShape& shape, const Tensor& keys, const Queue& queue);
void put_keys(const Tensor& keys, const AttentionShape& shape, const Tensor& qkv, const Queue& queue);

}  // namespace chorale
