#include "layers/router_balance.hpp"

#include "src/memory/on_host.hpp"

namespace chorale {

RouterBalance::RouterBalance(const ModelShape& shape, Allocator& memory) : rate_(shape.experts.bias_rate) {
  const Experts& e = shape.experts;
  const auto table = [&](const char* name, DType dtype) {
    auto all = std::make_shared<Parameter>(Parameter{.name = name, .shape = {shape.expert_blocks(), e.count}});
    all->value = Tensor(memory, all->shape, dtype, Category::params);
    clear(all->value);
    return all;
  };
  if (e.count > 0 && e.bias) bias_ = table("expert_bias", DType::f32);
  if (e.count > 0 && e.balance > 0 && e.balancing == BalanceOver::step) previous_ = table("choices/experts", DType::i64);
}

void RouterBalance::step(const ChoiceCounts& counts) {
  if (bias_ && !bias_->value.phantom())
    with_values<float>(bias_->value, Use::both, [&](std::span<float> biases) {
      auto bias = biases.begin();
      for (std::int64_t block = 0; block < counts.blocks(); ++block) {
        const auto chosen = counts.chosen(block);
        const std::int64_t sum = std::accumulate(chosen.begin(), chosen.end(), std::int64_t{0});
        for (const std::int64_t n : chosen) {
          const std::int64_t missing = sum - n * counts.experts;  // the integer E · (mean − n), with E experts
          *bias++ += static_cast<float>(missing > 0 ? rate_ : missing < 0 ? -rate_ : 0);
        }
      }
    });
  if (previous_ && !previous_->value.phantom())
    with_values<std::int64_t>(previous_->value, Use::write, [&](std::span<std::int64_t> previous) {
      auto next = previous.begin();
      for (std::int64_t block = 0; block < counts.blocks(); ++block)
        next = std::ranges::copy(counts.chosen(block), next).out;
    });
}

std::vector<ParameterPointer> RouterBalance::state() const {
  std::vector<ParameterPointer> all;
  for (const ParameterPointer& table : {bias_, previous_})
    if (table) all.push_back(table);
  return all;
}

}  // namespace chorale
