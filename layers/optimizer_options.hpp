// The options of the optimizer: its rule, its learning rate, and the clipping of gradients.
#pragma once
#include <memory>

#include <chorale/named.hpp>
#include "layers/learning_rate.hpp"

namespace chorale {

class Options;
class UpdateRule;

enum class OptimizerKind : std::uint8_t { adamw, sgd };
constexpr auto names_of(OptimizerKind) { return Names{"optimizer", "adamw", "sgd"}; }

struct OptimizerOptions {
  OptimizerKind kind = OptimizerKind::adamw;
  bool masters = true;  // f32 copies of 16-bit weights; false: update bf16 in place with stochastic rounding
  LearningRate rate;
  double decay = 0.1;  // weight decay; biases and norms do not decay
  double beta1 = 0.9, beta2 = 0.95, epsilon = 1e-8, momentum = 0.9;
  double clip = 1;  // the largest gradient norm; 0: no clipping
  void declare(Options& options);
};

std::unique_ptr<UpdateRule> rule_of(const OptimizerOptions& options);

}  // namespace chorale
