// Attention between ranks that split the tokens of a sequence. The attention layer calls these functions without knowing how
// they communicate. The default implementations assume that the rank has complete sequences. The schemes in parallel/context
// override them.
//
//   qkv of this rank's tokens ── forward ──▶ out of this rank's tokens          dout ── backward ──▶ dqkv
//
// A scheme keeps the tensors for its backward pass on the tape.
#pragma once
#include "layers/layer.hpp"
#include "src/math/attention.hpp"

namespace chorale {

// The arguments of an attention call, except its input.
struct AttentionCall {
  const AttentionShape& shape;
  const Dropout& dropout;
  SumSite& keys;  // sums of the gradients of keys and values
};

// The tokens whose queries this rank processes, in each sample. If several ranks share these tokens, each of these ranks
// computes some of the heads.
struct QueryTokens {
  std::vector<std::int64_t> places;  // ascending indices of the tokens in the sample; empty if they are the tokens of this
                                     // rank's rows
  std::int64_t ranks = 1;
};

class AttentionScheme {
 public:
  virtual ~AttentionScheme() = default;
  virtual Tensor forward(const Tensor& qkv, const AttentionCall& call, Context& context) const;
  virtual Tensor backward(const Tensor& dout, const AttentionCall& call, Context& context) const;
  // Used for generation. Copies the keys and values of all tokens of the current pass to the rows of `keys`.
  virtual void collect(const Tensor& qkv, const AttentionShape& shape, const Tensor& keys, Context& context) const;
  virtual Keeps keeps(std::int64_t rows, const AttentionShape& shape, const Context& context) const;

  virtual QueryTokens query_tokens() const { return {}; }

  static const AttentionScheme& alone();

 protected:
  // Returns the queries of this rank's tokens, and all keys that these queries attend to. The default implementation
  // requires that qkv has complete sequences.
  virtual AttentionInput input(const Tensor& qkv, const AttentionCall& call, Context& context) const;

  // attend and differentiate run the forward and backward kernels and measure the processor time.
  static void attend(const AttentionInput& in, const Tensor& out, const Tensor& lse, Context& context);
  static void differentiate(const AttentionInput& in, const Tensor& dout, const Tensor& out, const Tensor& lse,
                            const Tensor& dqkv, const KeyRows& dkeys, SumSite& keys, Context& context);
};

// take_keys copies the keys and values from qkv to the rows of a separate tensor, and put_keys copies these rows back to
// qkv.
void take_keys(const Tensor& qkv, const AttentionShape& shape, const Tensor& keys, const Queue& queue);
void put_keys(const Tensor& keys, const AttentionShape& shape, const Tensor& qkv, const Queue& queue);

}  // namespace chorale
