// A linear map, y = x·W + b, and its two gradients: dx = dy·Wᵀ and dW = xᵀ·dy. The layer keeps x for the backward pass.
//
// Tensor parallelism splits W by columns (a rank has some of the outputs) or by rows (a rank has some of the inputs). A sum
// over the split dimension is first computed block by block on each rank and then over ranks. If W is split by rows, this
// sum is y, in the forward pass. If W is split by columns, the sum is dx, in the backward pass, and its communication
// overlaps the computation of dW. A layer that is split by rows does not add a bias itself, because the bias must be added
// once, after the sum over ranks. Residual adds this bias.
#pragma once
#include "layers/layer.hpp"

namespace chorale {

class Linear final : public Layer {
 public:
  enum class Cut { columns, rows };
  struct Options {
    std::int64_t inputs, outputs;
    Cut cut;
    std::int64_t block;  // rows or columns per block of the split dimension; a block is never divided between ranks
    bool bias = false;
    double deviation = 0.02;
    bool after_attention = false;
    Sharding sharding = {};
  };
  Linear(std::string name, const Options& options);

  Tensor forward(const Tensor& x, Context& context) override;
  Tensor backward(const Tensor& dy, Context& context) override;
  void each_parameter(const std::function<void(const ParameterPointer&)>& visit) const override;
  void each_site(const std::function<void(SumSite&)>& visit) override;
  Keeps keeps(std::int64_t rows, const Context& context) const override;

 private:
  Tensor backward_columns(const Tensor& x, const Tensor& dy, Context& context);
  Tensor backward_rows(const Tensor& x, const Tensor& dy, Context& context);

  Cut cut_;
  std::int64_t block_;
  ParameterPointer weight_, bias_;
  SumSite sum_;  // the sum over blocks: y if W is split by rows, dx if W is split by columns
};

// Starts y = x·w if each rank holds some blocks of the summed dimension. Computes this rank's partial product and starts the
// sum over ranks. The returned function waits for that sum and returns y.
std::function<Tensor()> start_block_product(const Tensor& x, const Tensor& w, bool transposed, std::int64_t block,
                                            SumSite& site, Context& context);

}  // namespace chorale
