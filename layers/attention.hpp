// The part of attention that has no parameters. The layer rotates queries and keys if positions are rotary. In each head, a
// token's output is then a weighted mean of the value vectors of that token and all earlier tokens. For the backward pass,
// the layer keeps its input (queries, keys, values), its output and one value per head and token. The layer never keeps the
// scores. If ranks split the tokens of a sequence, an AttentionScheme does the communication that attention needs.
#pragma once
#include <optional>

#include "layers/layer.hpp"
#include "src/math/attention.hpp"
#include "src/math/embedding.hpp"

namespace chorale {

class Attention final : public Layer {
 public:
  struct Options {
    AttentionShape shape;
    std::optional<Rotary> rotary;
    double dropout = 0;
    std::uint32_t site = 0;      // identifies this dropout of attention probabilities among all dropouts of the model
    std::size_t cache_slot = 0;  // this layer's index in the key-value cache
    std::int64_t leaves = 1;     // number of leaves per sequence; a leaf is a fixed group of tokens (Context::leaves)
  };
  Attention(std::string name, const Options& options);

  Tensor forward(const Tensor& qkv, Context& context) override;
  Tensor backward(const Tensor& dy, Context& context) override;
  void each_site(const std::function<void(SumSite&)>& visit) override { visit(keys_); }
  Keeps keeps(std::int64_t rows, const Context& context) const override;

 private:
  Dropout dropout(const Context& context) const;
  Tensor generate(const Tensor& qkv, Context& context) const;
  Options options_;
  SumSite keys_;  // the gradients of keys and values, which are sums over queries
};

}  // namespace chorale
