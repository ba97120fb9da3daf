#include "src/math/optimizer_steps.hpp"

#include <vector>

#include "tests/math/cuda/gpu.hpp"

using namespace chorale;

namespace {

constexpr AdamStep adam{
    .rate = 1e-3, .beta1 = 0.9, .beta2 = 0.95, .epsilon = 1e-8, .decay = 0.1, .correction1 = 1.9, .correction2 = 2.7};
constexpr SgdStep plain{.rate = 0.1, .momentum = 0.9, .decay = 0.01};

// Splits weights, moments, gradients and values into ranges of 0 to 9 elements and one long range. The number of ranges
// exceeds the limit of one kernel launch, and few ranges are aligned.
std::vector<UpdateRange> many_of(const std::vector<Tensor>& t) {
  std::vector<UpdateRange> ranges;
  for (std::int64_t first = 0, i = 0; first < t[0].count(); ++i) {
    const std::int64_t count = i == 50 ? 3000 : std::min(i % 10, t[0].count() - first);
    const auto part = [&](const Tensor& tensor) { return tensor.slice().narrow(first, count); };
    ranges.push_back({.weights = part(t[0]), .moments = {part(t[1]), part(t[2])}, .gradient = part(t[3])});
    if (t.size() > 4) ranges.back().value = part(t[4]);
    ranges.back().scale = 1e-6 * static_cast<double>(i + 1);
    ranges.back().decays = i % 3 > 0;
    ranges.back().random = {.seed = 5, .step = 2, .site = static_cast<std::uint32_t>(i)};
    ranges.back().places = {.first = first, .length = 7, .columns = 20, .first_row = 3, .first_column = 11};
    first += count;
  }
  return ranges;
}

}  // namespace

TEST_CASE("device: optimizers give the host's bits for any number of ranges", "[gpu]") {
  Gpu gpu;
  if (!gpu) return;
  const auto compare = [&](const std::vector<Tensor>& tensors, double near) {
    gpu.compare(tensors, near, [](const auto& t, const Queue& queue) { adamw(adam, many_of(t), queue); });
    gpu.compare(tensors, near, [](const auto& t, const Queue& queue) { sgd(plain, many_of(t), queue); });
  };
  constexpr std::int64_t count = 4099;
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16})
    for (const DType of_gradient : {DType::f32, DType::f64, DType::i64, DType::bf16}) {
      INFO(name_of(dtype) << " from " << name_of(of_gradient));
      Desk desk;
      const DType wide = dtype == DType::f64 ? DType::f64 : DType::f32;
      const Tensor w = desk.random({count}, dtype), m = desk.random({count}, wide), v = desk.filled({count}, wide, 0.3);
      const Tensor gradient = desk.random({count}, of_gradient, 1 << 20);
      compare({w, m, v, gradient}, dtype == DType::f64 ? 1e-15 : 0);  // tolerance for f64, because the host's f64 reference
                                                                      // uses no FMA
      for (const DType narrow : {DType::bf16, DType::f16})
        if (dtype == DType::f32) compare({w, m, v, gradient, desk.random({count}, narrow)}, 0);
    }
}

TEST_CASE("device: casts give the host's bits", "[gpu]") {
  Gpu gpu;
  if (!gpu) return;
  for (const DType from : floating_dtypes)
    for (const DType to : floating_dtypes) {
      INFO(name_of(from) << " to " << name_of(to));
      Desk desk;
      const Tensor in = desk.random({4099}, from, 300), out = desk.random({4099}, to);
      put(in, 0, 1.00390625000001);  // just above the midpoint of two neighboring bf16 values
      put(in, 1, -0.0);
      put(in, 2, 1e-7);
      put(in, 3, INFINITY);
      gpu.compare({in, out}, 0, [](const auto& t, const Queue& queue) { cast(t[0].slice(), t[1].slice(), queue); });
    }
}
