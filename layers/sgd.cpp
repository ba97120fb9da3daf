// Stochastic gradient descent with momentum. As in PyTorch, weight decay is added to the gradient.
#include "layers/optimizer.hpp"

namespace chorale {
namespace {

class Sgd final : public UpdateRule {
 public:
  Sgd(double momentum, double decay) : step_{.rate = 0, .momentum = momentum, .decay = decay} {}

  std::vector<std::string> moments() const override { return {"momentum"}; }
  void begin_step(std::int64_t, double rate) override { step_.rate = rate; }
  void update(std::span<const UpdateRange> ranges, const Queue& queue) const override { sgd(step_, ranges, queue); }

 private:
  SgdStep step_;
};

}  // namespace

std::unique_ptr<UpdateRule> sgd_rule(double momentum, double decay) { return std::make_unique<Sgd>(momentum, decay); }

}  // namespace chorale
