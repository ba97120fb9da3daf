#include "src/math/attention.hpp"

#include "tests/math/cuda/gpu.hpp"

using namespace chorale;

namespace {

// Sequence lengths: two within a tile, tested with two samples, and one longer than a tile, tested with one sample.
constexpr std::int64_t lengths[] = {1, 19, 130};

Dropout drops(double probability, std::int64_t tokens) {
  return {probability, {.seed = 5, .step = 7, .site = 9}, {.first_sample = 3, .sequence = tokens, .tokens = tokens}};
}

}  // namespace

TEST_CASE("device: attention and its gradient match the host's", "[gpu]") {
  Gpu gpu;
  if (!gpu) return;
  for (const DType dtype : floating_dtypes)
    for (const std::int64_t width : {5, 40, 64, 128})
      for (const std::int64_t tokens : lengths)
        for (const double probability : {0.0, 0.2}) {
          if (tokens > 100 && (width < 64 || dtype == DType::f64)) continue;
          INFO(name_of(dtype) << " width " << width << " tokens " << tokens << " p " << probability);
          Desk desk;
          const bool is_long = tokens > 100;
          const AttentionShape shape{
              .groups = is_long ? 1 : 2, .queries = is_long ? 2 : 3, .width = width, .first_head = 4, .all_heads = 9};
          const Dropout drop = drops(probability, tokens);
          const std::int64_t rows = tokens > 100 ? tokens : 2 * tokens;
          const Tensor qkv = desk.random({rows, shape.columns()}, dtype, 2), dqkv = desk.random(qkv.shape(), dtype);
          const Tensor out = desk.random({rows, shape.heads() * width}, dtype), dout = desk.random(out.shape(), dtype);
          const Tensor lse = desk.random({rows, shape.heads()}, statistic_of(dtype));
          const double near = 3 * nearness(dtype);  // 16-bit types round probabilities before the product with V
          gpu.compare({qkv, out, lse}, near,
                      [&](const auto& t, const Queue& queue) { attention_forward(t[0], shape, drop, t[1], t[2], queue); });
          attention_forward(qkv, shape, drop, out, lse, {});
          gpu.compare({dout, qkv, out, lse, dqkv}, near, [&](const auto& t, const Queue& queue) {
            attention_backward(t[0], t[1], t[2], t[3], shape, drop, t[4], queue);
          });
        }
}

TEST_CASE("device: attention over cached keys and values, and the updated caches, match the host's", "[gpu]") {
  Gpu gpu;
  if (!gpu) return;
  for (const DType dtype : floating_dtypes)
    for (const auto& [past, tokens] : {std::pair{0, 5}, std::pair{7, 1}, std::pair{40, 3}}) {
      INFO(name_of(dtype) << " " << tokens << " after " << past);
      Desk desk;
      const AttentionShape shape{.groups = 2, .queries = 2, .width = 12};
      const Tensor qkv = desk.random({2 * tokens, shape.columns()}, dtype, 2);
      const Tensor keys = desk.random({2, 50, 2, 12}, dtype), values = desk.random({2, 50, 2, 12}, dtype);
      const Tensor out = desk.random({2 * tokens, 4 * 12}, dtype);
      gpu.compare({qkv, keys, values, out}, 2 * nearness(dtype),
                  [&](const auto& t, const Queue& queue) { attention_cached(t[0], shape, t[1], t[2], past, t[3], queue); });
    }
}
