// A branch of the residual stream, which is half a transformer block: y = x + dropout(body(norm(x)) + bias).
//
//   x ──┬────────────────────────────────────────────── + ── y
//       └─ norm ─ body (linear … linear) ─ + bias ─ dropout ─┘
//
// The bias belongs to the last linear layer of the body. With tensor parallelism, that layer's output is a sum over ranks.
// Residual adds the bias after the sum, so that it is added once. For the backward pass, the norm and the body keep tensors;
// the residual sum itself keeps none.
#pragma once
#include "layers/norm.hpp"
#include "layers/sequence.hpp"

namespace chorale {

class Residual final : public Layer {
 public:
  struct Options {
    std::string bias;  // name of the bias; empty if there is no bias
    std::int64_t width;
    double dropout = 0;
    std::uint32_t site = 0;
  };
  Residual(std::unique_ptr<Norm> norm, std::unique_ptr<Sequence> body, const Options& options);

  Tensor forward(const Tensor& x, Context& context) override;
  Tensor backward(const Tensor& dy, Context& context) override;
  void each_parameter(const std::function<void(const ParameterPointer&)>& visit) const override;
  void each_site(const std::function<void(SumSite&)>& visit) override;
  Keeps keeps(std::int64_t rows, const Context& context) const override;

 private:
  std::unique_ptr<Norm> norm_;
  std::unique_ptr<Sequence> body_;
  ParameterPointer bias_;
  double dropout_;
  std::uint32_t site_;
};

}  // namespace chorale
