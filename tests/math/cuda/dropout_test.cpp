#include "src/math/dropout.hpp"

#include "tests/math/cuda/gpu.hpp"

using namespace chorale;

TEST_CASE("device: dropout has the host's masks, bit for bit", "[gpu]") {
  Gpu gpu;
  if (!gpu) return;
  for (const double probability : {0.0, 0.3})
    for (const DType dtype : floating_dtypes)
      for (const std::int64_t width : {1, 3, 33, 64, 300}) {
        INFO(name_of(dtype) << " width " << width << " p " << probability);
        Desk desk;
        const Dropout drop{probability,
                           {.seed = 0x123456789abcdef0u, .step = 2, .site = 3},
                           {.first_sample = 1 << 30, .sequence = 9, .first_token = 3, .tokens = 3, .first_row = 1}};
        const Tensor x = desk.random({6, width}, dtype), y = desk.random({6, width}, dtype);
        const Tensor bias = desk.random({width}, dtype), around = desk.random({6, width}, dtype);
        gpu.compare({x, y}, 0, [&](const auto& t, const Queue& queue) { dropout(t[0], drop, t[1], queue); });
        gpu.compare({x, bias, around, y}, dtype == DType::f64 ? 1e-15 : 0, [&](const auto& t, const Queue& queue) {
          add_residual(t[0], &t[1], drop, t[2], t[3], queue);
          add_residual(t[0], nullptr, drop, t[2], t[2], queue);  // in place
        });
      }
}
