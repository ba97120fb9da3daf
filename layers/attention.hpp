// The core of attention, without weights: positions are turned into the queries and keys where they are rotary, and each head mixes the
// values of the tokens up to its own. Keeps its input (queries, keys, values), its output and one number a head and token; never scores.
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
    std::uint32_t site = 0;      // of the dropout of attention weights
    std::size_t cache_slot = 0;  // which of the cache's layers is its own
  };
  Attention(std::string name, const Options& options) : name_(std::move(name)), options_(options) {}

  const std::string& name() const override { return name_; }
  Tensor forward(const Tensor& qkv, Context& context) override;
  Tensor backward(const Tensor& dy, Context& context) override;
  Keeps keeps(std::int64_t rows, const Context& context) const override;

 private:
  Dropout dropout(const Context& context) const;
  std::string name_;
  Options options_;
};

}  // namespace chorale
