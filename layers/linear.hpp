// A linear map, y = x·W + b, and its two gradients: dx = dy·Wᵀ and dW = xᵀ·dy. Keeps its input.
//
// Tensor parallelism splits W by columns (each rank has some outputs) or by rows (some inputs). The sum over the split
// dimension is computed block by block and then over ranks. With `rows` this is the forward sum. With `columns` it is the
// backward sum, which overlaps the gradient of W. A bias comes after the sum; with `rows` it is added elsewhere
// (residual.hpp).
#pragma once
#include "layers/layer.hpp"

namespace chorale {

class Linear final : public Layer {
 public:
  enum class Cut { columns, rows };
  struct Options {
    std::int64_t inputs, outputs;
    Cut cut;
    std::int64_t block;  // of the split dimension: never divided between ranks
    bool bias = false;
    double deviation = 0.02;
    bool after_attention = false;
    Share share = {};
  };
  Linear(std::string name, const Options& options);

  const std::string& name() const override { return name_; }
  Tensor forward(const Tensor& x, Context& context) override;
  Tensor backward(const Tensor& dy, Context& context) override;
  void each_parameter(const std::function<void(const ParameterPointer&)>& visit) const override;
  void each_site(const std::function<void(SumSite&)>& visit) override;
  Keeps keeps(std::int64_t rows, const Context& context) const override;

 private:
  Tensor backward_columns(const Tensor& x, const Tensor& dy, Context& context);
  Tensor backward_rows(const Tensor& x, const Tensor& dy, Context& context);

  std::string name_;
  Cut cut_;
  std::int64_t block_;
  ParameterPointer weight_, bias_;
  SumSite sum_;  // over the blocks
};

// Starts y = x·w, where ranks hold different blocks of the sum: computes this rank's partial product and starts adding
// over ranks.
std::function<Tensor()> start_block_product(const Tensor& x, const Tensor& w, bool transposed, std::int64_t block,
                                            SumSite& site, Context& context);

}  // namespace chorale
