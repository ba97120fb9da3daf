#include "tests/math/cuda/gpu.hpp"

using namespace chorale;

TEST_CASE("device: gelu and swiglu match the host's", "[gpu]") {
  Gpu gpu;
  if (!gpu) return;
  for (const DType dtype : floating_dtypes)
    for (const std::int64_t count : device_sizes) {
      INFO(name_of(dtype) << " " << count);
      Desk desk;
      const double near = nearness(dtype);
      const Tensor x = desk.random({count}, dtype, 5), y = desk.random({count}, dtype), z = desk.random({count}, dtype);
      gpu.compare({x, y}, near, [](const auto& t, const Queue& queue) { gelu_forward(t[0], t[1], queue); });
      gpu.compare({x, y, z}, near, [](const auto& t, const Queue& queue) { gelu_backward(t[1], t[0], t[2], queue); });
      gpu.compare({x, y}, near,  // in place
                  [](const auto& t, const Queue& queue) { gelu_backward(t[1], t[0], t[1], queue); });
      const Tensor pairs = desk.random({3, 2, 2, count}, dtype, 5), dx = desk.random(pairs.shape(), dtype);
      const Tensor products = desk.random({3, 2 * count}, dtype);
      gpu.compare({pairs, products}, near,
                  [&](const auto& t, const Queue& queue) { swiglu_forward(t[0], count, t[1], queue); });
      gpu.compare({products, pairs, dx}, near,
                  [&](const auto& t, const Queue& queue) { swiglu_backward(t[0], t[1], count, t[2], queue); });
    }
}

TEST_CASE("device: a kernel refuses host tensors, and accepts device tensors of any alignment", "[gpu]") {
  Gpu gpu;
  if (!gpu) return;
  Desk desk;
  const Tensor x = desk.random({100}, DType::bf16), y = desk.random({100}, DType::bf16);
  CHECK_THROWS_WITH(gelu_forward(gpu.sent(x), y, gpu.queue()), says("a kernel on cuda:0 was given a tensor on host"));
  gpu.compare({x, y}, tolerance(DType::bf16),
              [](const auto& t, const Queue& queue) { gelu_forward(t[0].narrow(1, 90), t[1].narrow(3, 90), queue); });
}
