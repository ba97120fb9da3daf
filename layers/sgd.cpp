// Stochastic gradient descent with momentum, as PyTorch has it: decay is added to the gradient.
#include "layers/optimizer.hpp"
#include "src/math/optimizer_steps.hpp"

namespace chorale {
namespace {

class Sgd final : public UpdateRule {
 public:
  Sgd(double momentum, double decay) : step_{.rate = 0, .momentum = momentum, .decay = decay} {}

  std::vector<std::string> moments() const override { return {"momentum"}; }
  void begin_step(std::int64_t, double rate) override { step_.rate = rate; }
  void update(const Slice& weights, std::span<const Slice> moments, const Slice& gradient, double scale, bool decays,
              const Queue& queue) const override {
    SgdStep step = step_;
    if (!decays) step.decay = 0;
    sgd(step, weights, moments[0], gradient, scale, queue);
  }

 private:
  SgdStep step_;
};

}  // namespace

std::unique_ptr<UpdateRule> sgd_rule(double momentum, double decay) { return std::make_unique<Sgd>(momentum, decay); }

}  // namespace chorale
