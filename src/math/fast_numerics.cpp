// Fast numerics on the host: oneDNN computes products, and fast_sums.hpp computes all other sums.
#include "src/math/fast_sums.hpp"
#include "src/math/products.hpp"

namespace chorale {
namespace {

class FastNumerics final : public FastSums {
 public:
  void product(const Tensor& x, const Tensor& w, bool transposed, const Tensor* bias, const Tensor& y,
               const Queue& queue) override {
    products_.product(x, w, transposed, bias, y, queue);
  }
  void add_outer(const Tensor& x, const Tensor& dy, const Leaves&, const Tensor& dw, SumSite&, const Queue& queue) override {
    products_.add_outer(x, dy, dw, queue);
  }

 private:
  Products products_;
};

}  // namespace

std::unique_ptr<Numerics> fast_numerics() { return std::make_unique<FastNumerics>(); }

}  // namespace chorale
