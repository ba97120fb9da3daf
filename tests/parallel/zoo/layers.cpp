// Mistakes at the boundaries of layers that tensor-parallel ranks share.
#include <algorithm>

#include "parallel/step/tensor.hpp"
#include "tests/parallel/zoo/mistake.hpp"

namespace chorale::zoo {
namespace {

// Each shard of a row-parallel layer adds the bias to its partial sum, so the total contains the bias once per shard.
template <class Of>
struct BiasOnEach : Of {
  BiasOnEach(Axis& axis, const std::vector<ParameterPointer>& parameters)
      : Of(axis), extra(static_cast<float>(axis.size() - 1)), parameters(parameters) {}
  std::function<Tensor()> start_sum(const Tensor& partial, SumSite& site, Context& context) const override {
    const auto bias = std::find_if(parameters.begin(), parameters.end(),
                                   [&](const ParameterPointer& p) { return p->name + " output" == bias_of(site.name); });
    const auto sum = Of::start_sum(partial, site, context);
    if (bias == parameters.end()) return sum;
    return [sum, b = Tensor((*bias)->value), extra = extra] {
      const Tensor y = sum();
      const std::span<float> all = y.template values<float>(), one = b.template values<float>();
      for (std::size_t i = 0; i < all.size(); ++i) all[i] += extra * one[i % one.size()];
      return y;
    };
  }
  // "block.0.mlp.down output" → "block.0.mlp.down.bias output"
  static std::string bias_of(std::string site) { return site.insert(std::min(site.find(' '), site.size()), ".bias"); }
  float extra;
  std::vector<ParameterPointer> parameters;
};

template <class Of>
void add_bias_on_each(Run& run) {
  run.training.replace_boundary(
      [&](auto) { return std::make_unique<BiasOnEach<Of>>(run.training.mesh().tensor(), run.training.parameters()); });
}

// Each rank has gathered all logits, but the loss still sums the exponentials over all tensor ranks.
template <class Of>
struct GatheredLogits : Of {
  using Of::Of;
  void add(const Tensor& sums, const Tensor& hits) const override {
    Of::add(sums, hits);
    for (std::int64_t& sum : sums.values<std::int64_t>()) sum *= this->axis_.size();
  }
};

// The layers before a column-parallel layer get only this rank's part of the gradient, because the sum over ranks is
// missing.
struct LocalInputGradients : TensorParallel {
  using TensorParallel::TensorParallel;
  std::function<Tensor()> start_sum(const Tensor& partial, SumSite& site, Context& context) const override {
    if (site.sum != SumOf::input_gradients) return TensorParallel::start_sum(partial, site, context);
    return [partial, &site, &context] { return context.settled(partial, site); };
  }
};

template <class Boundary>
void share_by(Run& run) {
  run.training.replace_boundary([&](auto) { return std::make_unique<Boundary>(run.training.mesh().tensor()); });
}

}  // namespace

std::vector<Mistake> mistakes_in_layers() {
  return {
      {.about = "each shard adds the bias",
       .layouts = {"dp1.tp2", "dp2.tp3"},
       .proof = "step 2: loss",
       .make = add_bias_on_each<TensorParallel>},
      {.about = "each shard adds the bias to its rows",
       .layouts = {"dp1.tp2.sp", "dp1.tp3.sp"},
       .proof = "step 2: loss",
       .make = add_bias_on_each<SequenceParallel>},
      {.about = "a loss for divided vocabularies gets gathered logits",
       .layouts = {"dp1.tp2", "dp2.tp3"},
       .proof = "step 1: loss",
       .make = share_by<GatheredLogits<TensorParallel>>},
      {.about = "tensor ranks do not sum the gradients of a layer's input",
       .layouts = {"dp1.tp2", "dp2.tp2.z1", "dp1.tp2.pp2"},
       .proof = "step 1: norm",
       .make = share_by<LocalInputGradients>},
  };
}

}  // namespace chorale::zoo
