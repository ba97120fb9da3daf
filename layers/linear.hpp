// A linear map, y = x·W + b, and its two gradients: dx = dy·Wᵀ and dW = xᵀ·dy. Keeps its input.
//
// Tensor parallelism cuts W by columns (each rank has some outputs) or by rows (some inputs). The sum over the dimension that is cut is
// made block by block and then over ranks: it is the forward sum for `rows`, the backward sum for `columns`, where it is on its way while the
// gradient of W is computed. A bias comes after the sum; for `rows` that is not here (residual.hpp).
#pragma once
#include "layers/layer.hpp"

namespace chorale {

class Linear final : public Layer {
 public:
  enum class Cut { columns, rows };
  struct Options {
    std::int64_t inputs, outputs;
    Cut cut;
    std::int64_t block;  // of the dimension that is cut: never divided between ranks
    bool bias = false;
    double deviation = 0.02;
    Share share = {};
  };
  Linear(std::string name, const Options& options);

  const std::string& name() const override { return name_; }
  Tensor forward(const Tensor& x, Context& context) override;
  Tensor backward(const Tensor& dy, Context& context) override;
  void each_parameter(const std::function<void(const ParameterPointer&)>& visit) const override;
  void each_site(const std::function<void(Site&)>& visit) override;
  Keeps keeps(std::int64_t rows, const Context& context) const override;

 private:
  Tensor backward_columns(const Tensor& x, const Tensor& dy, Context& context);
  Tensor backward_rows(const Tensor& x, const Tensor& dy, Context& context);

  std::string name_;
  Cut cut_;
  std::int64_t block_;
  ParameterPointer weight_, bias_;
  Site sum_;  // over the blocks
};

// Begins y = x·w where ranks hold other blocks of the sum: the partial product here, which they add up.
std::function<Tensor()> start_block_product(const Tensor& x, const Tensor& w, bool transposed, std::int64_t block,
                                            Site& site, Context& context);

}  // namespace chorale
