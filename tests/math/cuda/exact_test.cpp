// In exact numerics, every sum on a device is bit-identical to the sum on the host. A SumSite is a point in the model at
// which values are summed. The largest addend that a SumSite records is also the same on the host and the device.
#include <array>

#include "tests/math/cuda/gpu.hpp"

using namespace chorale;

namespace {

// Like gpu.compare(), for calls that raise the site's largest addend, `highest`. After the call, `highest` must be the same
// on the host and the device.
template <class Call>
void compare_sums(Gpu& gpu, SumOf sum, const std::vector<Tensor>& tensors, Call call) {
  const auto host = exact_numerics();
  SumSite here{.name = "here", .sum = sum, .addends = 100}, there = here;
  gpu.compare(tensors, 0, [&](const auto& t, const Queue& queue) {
    call(queue.device ? gpu.exact() : *host, t, queue.device ? there : here, queue);
  });
  CHECK_NOTHROW(gpu.exact().check(there));
  CHECK(there.highest == here.highest);
  CHECK(there.highest > 0);
}

// A tensor of nonzero sums to which the tested call adds.
Tensor begun(Desk& desk, Shape shape) { return desk.filled(std::move(shape), DType::i64, 12345); }

}  // namespace

TEST_CASE("device: exact products and their gradients have the host's bits", "[gpu]") {
  Gpu gpu;
  if (!gpu) return;
  const auto host = exact_numerics();
  for (const auto& [m, k, n, block] : {std::tuple{1, 1, 1, 1}, std::tuple{3, 17, 9, 5}, std::tuple{64, 32, 64, 16},
                                       std::tuple{65, 70, 131, 24}, std::tuple{130, 129, 67, 100}}) {
    INFO(m << " " << k << " " << n << " in blocks of " << block);
    Desk desk;
    const Tensor x = desk.random({m, k}, DType::f32), w = desk.random({k, n}, DType::f32);
    const Tensor turned = desk.random({n, k}, DType::f32), bias = desk.random({n}, DType::f32);
    const Tensor y = desk.random({m, n}, DType::f32), sums = begun(desk, {m, n});
    for (const bool transposed : {false, true}) {
      const Tensor& right = transposed ? turned : w;
      gpu.compare({x, right, bias, y}, 0, [&](const auto& t, const Queue& queue) {
        (queue.device ? gpu.exact() : *host).product(t[0], t[1], transposed, &t[2], t[3], queue);
      });
      gpu.compare({x, right, y}, 0, [&](const auto& t, const Queue& queue) {
        (queue.device ? gpu.exact() : *host).product(t[0], t[1], transposed, nullptr, t[2], queue);
      });
      compare_sums(gpu, SumOf::activations, {x, right, sums},
                   [&](Numerics& numerics, const auto& t, SumSite& site, const Queue& queue) {
                     numerics.partial_product(t[0], t[1], transposed, block, t[2], site, queue);
                   });
    }
    compare_sums(gpu, SumOf::activations, {x, w, sums, y},
                 [&](Numerics& numerics, const auto& t, SumSite& site, const Queue& queue) {
                   numerics.partial_product(t[0], t[1], false, block, t[2], site, queue);
                   numerics.settle(t[2], t[3], site, queue);
                 });
    const std::int64_t leaf = m % 5 == 0 ? m / 5 : m;
    compare_sums(gpu, SumOf::weight_gradients, {x, y, begun(desk, {k, n})},
                 [&](Numerics& numerics, const auto& t, SumSite& site, const Queue& queue) {
                   numerics.add_outer(t[0], t[1], leaf, t[2], site, queue);
                 });
  }
}

TEST_CASE("device: exact weight gradients of uneven leaves have the host's bits", "[gpu]") {
  Gpu gpu;
  if (!gpu) return;
  for (const std::vector<std::int64_t>& leaves : uneven_leaves()) {
    std::int64_t rows = 0;
    for (const std::int64_t leaf : leaves) rows += leaf;
    Desk desk;
    compare_sums(gpu, SumOf::weight_gradients,
                 {desk.random({rows, 9}, DType::f32), desk.random({rows, 70}, DType::f32), begun(desk, {9, 70})},
                 [&](Numerics& numerics, const auto& t, SumSite& site, const Queue& queue) {
                   numerics.add_outer_by_leaves(t[0], t[1], leaves, t[2], site, queue);
                 });
  }
}

TEST_CASE("device: exact sums over tokens, exponentials and losses have the host's bits", "[gpu]") {
  Gpu gpu;
  if (!gpu) return;
  for (const auto& [rows, width] : {std::pair{1, 1}, std::pair{65, 24}, std::pair{200, 33}, std::pair{9, 1055}}) {
    INFO(rows << " " << width);
    Desk desk;
    const Tensor dy = desk.random({rows, width}, DType::f32), x = desk.random({rows, width}, DType::f32, 3);
    const Tensor stats = desk.random({rows, 2}, DType::f32), row = desk.random({rows}, DType::f32);
    const Tensor ids = desk.empty({rows}, DType::i32);
    for (std::int64_t i = 0; i < rows; ++i) put(ids, i, 3 + i * i % 31);  // some ids repeat, others are outside the table
    const auto sums = [&](Shape shape) { return begun(desk, std::move(shape)); };
    compare_sums(gpu, SumOf::token_gradients, {dy, sums({width})},
                 [&](Numerics& numerics, const auto& t, SumSite& site, const Queue& queue) {
                   numerics.add_columns(t[0], t[1], site, queue);
                 });
    compare_sums(gpu, SumOf::token_gradients, {dy, x, stats, sums({width}), sums({width})},
                 [&](Numerics& numerics, const auto& t, SumSite& site, const Queue& queue) {
                   numerics.add_norm_gradients(NormKind::layer, t[0], t[1], t[2], t[3], &t[4], site, queue);
                   numerics.add_norm_gradients(NormKind::rms, t[0], t[1], t[2], t[3], nullptr, site, queue);
                 });
    compare_sums(gpu, SumOf::token_gradients, {ids, dy, sums({20, width})},
                 [&](Numerics& numerics, const auto& t, SumSite& site, const Queue& queue) {
                   numerics.add_rows(t[0], 3, t[1], t[2], site, queue);
                 });
    compare_sums(gpu, SumOf::exponentials, {x, desk.filled({rows}, DType::f32, 3), sums({rows})},
                 [&](Numerics& numerics, const auto& t, SumSite& site, const Queue& queue) {
                   numerics.sum_exponentials(t[0], t[1], t[2], site, queue);
                 });
    compare_sums(gpu, SumOf::losses, {row, sums({1})},
                 [&](Numerics& numerics, const auto& t, SumSite& site, const Queue& queue) {
                   numerics.add_losses(t[0], t[1], site, queue);
                 });
  }
}

TEST_CASE("device: the exact norm has the host's bits and saturates at its limit", "[gpu]") {
  Gpu gpu;
  if (!gpu) return;
  const auto host = exact_numerics();
  Desk desk;
  const auto of = [&](Numerics& numerics, const Tensor& gradient, double scale, const Queue& queue) {
    SquareSum sum{.exact = 17};
    numerics.add_squares(std::array{ScaledSlice{gradient.slice(), scale}}, sum, queue);
    return sum.exact;
  };
  const auto both = [&](const Tensor& gradient, double scale) {
    CHECK((of(gpu.exact(), gpu.sent(gradient), scale, gpu.queue()) == of(*host, gradient, scale, {})));
  };
  for (const std::int64_t count : {1, 255, 4099, 30000}) {
    const Tensor values = desk.random({count}, DType::f32), wholes = desk.random({count}, DType::i64);
    for (std::int64_t i = 0; i < count; ++i)
      wholes.values<std::int64_t>()[static_cast<std::size_t>(i)] = (i * i - 40 * i) << 30;
    both(values, 0.3);
    both(wholes, 0x1p-40);
  }
  SquareSum of_none{.exact = 17};  // some ranks contribute no gradients to the norm
  gpu.exact().add_squares({}, of_none, gpu.queue());
  CHECK((of_none.exact == 17));
  // An element that is too large counts as the limit, 2^116 units. The sum of 4096 such elements is 2^128 units, so the sum
  // must also saturate.
  for (const float bad : {NAN, -INFINITY, 3e38f}) both(desk.filled({4096}, DType::f32, bad), 1);
  both(desk.filled({1024}, DType::f32, 8192), 1);  // the sum reaches the limit although no element does
}

TEST_CASE("device: check() names the site of an addend that is too large", "[gpu]") {
  Gpu gpu;
  if (!gpu) return;
  Desk desk;
  const auto add = [&](float value, SumSite& site) {
    const Tensor dy = desk.filled({40, 70}, DType::f32, 0.5);
    put(dy, 39 * 70 + 69, value);
    gpu.exact().add_columns(gpu.sent(dy), gpu.sent(begun(desk, {70})), site, gpu.queue());
  };
  SumSite sound{.name = "sound", .sum = SumOf::token_gradients, .addends = 40}, large = sound, endless = sound,
                                                                                other = sound;
  large.name = "large";
  endless.name = "endless";
  add(1, sound);
  add(-1e8f, large);
  add(NAN, endless);
  CHECK_THAT(refusal([&] { gpu.exact().check(large); }), says("large: numbers have grown too large"));
  CHECK_THAT(refusal([&] { gpu.exact().check(endless); }), says("endless: numbers are not finite"));
  CHECK_NOTHROW(gpu.exact().check(sound));
  CHECK_NOTHROW(gpu.exact().check(other));
  large.highest = 0;
  add(2, large);
  CHECK_NOTHROW(gpu.exact().check(large));  // the first check() cleared the error that it reported
}
