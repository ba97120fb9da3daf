// The experts of one layer on this rank. An expert is a small MLP with its own matrices and its own rows.
//
//   rows sorted by expert ─ up ─▶ before ─ activation ─▶ after ─ down ─▶ outputs, one row each
//                                                                         (backward: the reverse)
// Tensor parallelism splits every expert like a dense MLP: `up` by columns and `down` by rows. Outputs and input gradients
// are therefore partial sums. Matrix products are computed one expert at a time. The routing determines the number of rows
// of each expert.
//
// Per row, an expert of width f takes 2·(gates + 1)·h·f flops in the forward pass and twice as many in the backward pass.
#pragma once
#include <chorale/model.hpp>
#include "layers/expert_exchange.hpp"
#include "layers/parameter.hpp"
#include "src/math/numerics.hpp"

namespace chorale {

class ExpertMlps {
 public:
  // `width` is this rank's shard of every expert, and `experts` are the experts of this rank. `deviation` is the standard
  // deviation of the initial values of `down`. `forced_counts` states how many tokens of a sequence each expert of the model
  // receives; if it is empty, the router chooses.
  ExpertMlps(const std::string& layer, const ModelShape& shape, const Sharding& width, const Sharding& experts,
             double deviation, const std::vector<std::int64_t>& forced_counts);

  // `here`: the number of rows of each expert.
  Tensor before(const Tensor& rows, const ExpertRows& here, Context& context) const;
  Tensor after(const Tensor& before, Context& context) const;
  Tensor outputs(const Tensor& after, const ExpertRows& here, Context& context);
  Tensor before_gradient(const Tensor& doutputs, const Tensor& before, const ExpertRows& here, Context& context) const;
  Tensor input_gradient(const Tensor& dbefore, const ExpertRows& here, Context& context);
  void add_weight_gradients(const Tensor& rows, const Tensor& dbefore, const Tensor& after, const Tensor& doutputs,
                            const ExpertRows& here, Context& context);

  std::int64_t count() const { return std::ssize(experts_); }
  std::int64_t kept_columns(bool recomputes_after) const {
    return (gates_ + (recomputes_after ? 0 : 1)) * columns_;
  }  // number of columns kept per row
  std::int64_t forced_rows() const {
    return forced_rows_;
  }  // number of rows that all experts of this rank together get
     // from each sequence
  SumSite& output_site() { return output_; }
  SumSite& input_gradient_site() { return input_gradient_; }
  void each_parameter(const std::function<void(const ParameterPointer&)>& visit) const;

 private:
  struct Expert {
    ParameterPointer up, down;
  };
  Tensor products(const Tensor& x, ParameterPointer Expert::*matrix, bool transposed, std::int64_t columns,
                  const ExpertRows& here, Context& context) const;
  Tensor partial_products(const Tensor& x, ParameterPointer Expert::*matrix, bool transposed, std::int64_t block,
                          const ExpertRows& here, SumSite& site, Context& context) const;

  std::int64_t width_, gates_, unit_;  // unit: number of consecutive columns that are never divided between ranks
  std::int64_t columns_;               // columns of the activation function's output on this rank
  std::int64_t forced_rows_ = 0;
  std::vector<Expert> experts_;
  SumSite output_, input_gradient_;  // sums over the units of an expert
};

}  // namespace chorale
