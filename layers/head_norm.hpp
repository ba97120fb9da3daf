// An RMSNorm of every query head and every key head (Qwen3), applied between the qkv matrix and the rotation. All query
// heads share one gain, and all key heads share a second one. The values are not normalized. The norm of a head depends on
// this head only, so a tensor rank normalizes only the heads that it has. The gradient of a gain is summed over the heads of
// all tensor ranks.
//
//   qkv [T, groups·(queries+2)·d] ─┬─ q q k ─ norm ─┬─ qkv, in place
//                                  └─── v ──────────┘
//
// For the backward pass the layer keeps copies of the queries and keys, and two values per head.
#pragma once
#include <array>

#include "layers/layer.hpp"
#include "src/math/heads.hpp"

namespace chorale {

class HeadNorm final : public Layer {
 public:
  struct Options {
    std::int64_t groups, all_groups;  // groups of heads on this rank, and on all tensor ranks together
    std::int64_t queries, width;      // query heads of a group; width of a head
    double epsilon;
  };
  // `attention` is the name of the attention branch, which prefixes the names of the gains.
  HeadNorm(const std::string& attention, const Options& options);

  Tensor forward(const Tensor& qkv, Context& context) override;
  Tensor backward(const Tensor& dy, Context& context) override;
  void each_parameter(const std::function<void(const ParameterPointer&)>& visit) const override;
  Keeps keeps(std::int64_t rows, const Context& context) const override;

 private:
  struct Kind {
    SomeHeads heads;
    ParameterPointer gain;
  };
  double epsilon_;
  std::array<Kind, 2> kinds_;  // queries, keys
};

}  // namespace chorale
