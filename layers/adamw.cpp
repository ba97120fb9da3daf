// AdamW: Adam with decoupled weight decay (Loshchilov & Hutter 2019). The powers of β are computed by repeated
// multiplication instead of the C library's pow, so they are bit-identical on every machine. A resumed run repeats these
// multiplications from step 1.
#include "layers/optimizer.hpp"

namespace chorale {
namespace {

class AdamW final : public UpdateRule {
 public:
  AdamW(double beta1, double beta2, double epsilon, double decay)
      : step_{.rate = 0,
              .beta1 = beta1,
              .beta2 = beta2,
              .epsilon = epsilon,
              .decay = decay,
              .correction1 = 1,
              .correction2 = 1} {}

  std::vector<std::string> moments() const override { return {"moment1", "moment2"}; }

  void begin_step(std::int64_t step, double rate) override {
    if (step <= powers_) {
      powers_ = 0;
      power1_ = power2_ = 1;
    }
    for (; powers_ < step; ++powers_) {
      power1_ *= step_.beta1;
      power2_ *= step_.beta2;
    }
    step_.rate = rate;
    step_.correction1 = 1 / (1 - power1_);
    step_.correction2 = 1 / (1 - power2_);
  }

  void update(std::span<const UpdateRange> ranges, const Queue& queue) const override { adamw(step_, ranges, queue); }

 private:
  AdamStep step_;
  double power1_ = 1, power2_ = 1;
  std::int64_t powers_ = 0;
};

}  // namespace

std::unique_ptr<UpdateRule> adamw_rule(double beta1, double beta2, double epsilon, double decay) {
  return std::make_unique<AdamW>(beta1, beta2, epsilon, decay);
}

}  // namespace chorale
