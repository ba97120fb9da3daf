#include "src/math/slots.hpp"

#include "tests/math/cuda/gpu.hpp"

using namespace chorale;

TEST_CASE("device: rows to and from experts, and their sums, match the host's", "[gpu]") {
  Gpu gpu;
  if (!gpu) return;
  for (const DType dtype : floating_dtypes)
    for (const std::int64_t width : {1, 24, 33, 4100}) {
      INFO(name_of(dtype) << " " << width);
      Desk desk;
      const Tensor places = desk.empty({7, 3}, DType::i32), weights = desk.random({7, 3}, statistic_of(dtype));
      for (std::int32_t i = 0; i < 21; ++i) put(places, i, i % 8 == 5 ? -1 : i * 11 % 21);  // some choices are dropped
      const Tensor x = desk.random({7, width}, dtype), rows = desk.random({21, width}, dtype);
      const Tensor slots = desk.random({7, 3 * width}, dtype), y = desk.random({7, width}, dtype);
      gpu.compare({x, places, rows}, 0,
                  [](const auto& t, const Queue& queue) { take_rows(t[0], nullptr, t[1], t[2], queue); });
      gpu.compare({x, weights, places, rows}, 0,
                  [](const auto& t, const Queue& queue) { take_rows(t[0], &t[1], t[2], t[3], queue); });
      gpu.compare({rows, places, slots}, 0, [](const auto& t, const Queue& queue) { put_slots(t[0], t[1], t[2], queue); });
      gpu.compare({slots, weights, x, y}, 0,
                  [](const auto& t, const Queue& queue) { add_slots(t[0], &t[1], &t[2], t[3], queue); });
      gpu.compare({slots, y}, 0, [](const auto& t, const Queue& queue) { add_slots(t[0], nullptr, &t[1], t[1], queue); });
      gpu.compare({y, slots, weights}, dtype == DType::f32 ? 0 : 1e-5,
                  [](const auto& t, const Queue& queue) { weight_gradients(t[0], t[1], t[2], queue); });
    }
}

TEST_CASE("device: partial sums travel to and from experts unchanged", "[gpu]") {
  Gpu gpu;
  if (!gpu) return;
  Desk desk;
  const Tensor places = desk.empty({2, 2}, DType::i32), rows = desk.random({3, 5}, DType::i64, 1e15);
  for (std::int32_t i = 0; i < 4; ++i) put(places, i, i - 1);
  gpu.compare({rows, places, desk.filled({2, 10}, DType::i64, 7)}, 0,
              [](const auto& t, const Queue& queue) { put_slots(t[0], t[1], t[2], queue); });
  gpu.compare({desk.random({2, 5}, DType::i64, 1e15), places, rows}, 0,
              [](const auto& t, const Queue& queue) { take_rows(t[0], nullptr, t[1], t[2], queue); });
}
