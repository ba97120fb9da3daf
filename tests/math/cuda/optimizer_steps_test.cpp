#include "src/math/optimizer_steps.hpp"

#include "tests/math/cuda/gpu.hpp"

using namespace chorale;

TEST_CASE("device: optimizers and casts give the host's bits", "[gpu]") {
  Gpu gpu;
  if (!gpu) return;
  const AdamStep adam{
      .rate = 1e-3, .beta1 = 0.9, .beta2 = 0.95, .epsilon = 1e-8, .decay = 0.1, .correction1 = 1.9, .correction2 = 2.7};
  const SgdStep plain{.rate = 0.1, .momentum = 0.9, .decay = 0.01};
  for (const DType dtype : {DType::f32, DType::f64})
    for (const DType of_gradient : {DType::f32, DType::f64, DType::i64})
      for (const std::int64_t count : device_sizes) {
        INFO(name_of(dtype) << " from " << name_of(of_gradient) << " " << count);
        Desk desk;
        const Tensor w = desk.random({count}, dtype), m = desk.random({count}, dtype), v = desk.filled({count}, dtype, 0.3);
        const Tensor gradient = desk.random({count}, of_gradient, 1 << 20);
        const double near = dtype == DType::f64 ? 1e-15 : 0;  // the host's reference in f64 does not fuse
        gpu.compare({w, m, v, gradient}, near, [&](const auto& t, const Queue& queue) {
          adamw(adam, t[0].slice(), t[1].slice(), t[2].slice(), t[3].slice(), 1e-6, queue);
        });
        gpu.compare({w, m, gradient}, near, [&](const auto& t, const Queue& queue) {
          sgd(plain, t[0].slice(), t[1].slice(), t[2].slice(), 1e-6, queue);
        });
      }
  for (const DType from : floating_dtypes)
    for (const DType to : floating_dtypes) {
      INFO(name_of(from) << " to " << name_of(to));
      Desk desk;
      const Tensor in = desk.random({4099}, from, 300), out = desk.random({4099}, to);
      put(in, 0, 1.00390625000001);  // to bf16: just above the middle of two
      put(in, 1, -0.0);
      put(in, 2, 1e-7);
      put(in, 3, INFINITY);
      gpu.compare({in, out}, 0, [](const auto& t, const Queue& queue) { cast(t[0].slice(), t[1].slice(), queue); });
    }
}
