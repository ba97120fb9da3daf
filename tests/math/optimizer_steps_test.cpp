#include "src/math/optimizer_steps.hpp"

#include "src/math/reference/optimizer_steps.hpp"
#include "tests/math/kernels.hpp"

using namespace chorale;

namespace {

constexpr AdamStep adam{
    .rate = 1e-2, .beta1 = 0.9, .beta2 = 0.95, .epsilon = 1e-8, .decay = 0.1, .correction1 = 10, .correction2 = 20};
constexpr SgdStep momentum{.rate = 1e-2, .momentum = 0.9, .decay = 0.1};

struct Weights {
  Desk desk;
  Tensor w, m, v, g;
  Weights(std::int64_t count, DType dtype, DType gradient) {
    w = desk.random({count}, dtype), m = desk.random({count}, dtype), v = desk.random({count}, dtype);
    for (std::int64_t i = 0; i < count; ++i) put(v, i, std::abs(doubles(v)[static_cast<std::size_t>(i)]));
    g = desk.random({count}, gradient, gradient == DType::i64 ? 0x1p40 : 1);
  }
};

}  // namespace

TEST_CASE("optimizer steps: the fast kernels give the reference's values, cut anywhere the same bits") {
  for (const DType dtype : {DType::f32, DType::f64})
    for (const DType gradient : {DType::f32, DType::f64, DType::i64})
      for (const std::int64_t count : odd_sizes) {
        INFO(name_of(dtype) << " gradients " << name_of(gradient) << " " << count);
        const double scale = gradient == DType::i64 ? 0x1p-41 : 0.5;
        Weights whole(count, dtype, gradient), cut(count, dtype, gradient);
        auto w = doubles(whole.w), m = doubles(whole.m), v = doubles(whole.v), g = doubles(whole.g);
        const double near = dtype == DType::f32 ? 1e-6 : 1e-15;

        adamw(adam, whole.w.slice(), whole.m.slice(), whole.v.slice(), whole.g.slice(), scale, {1});
        reference::adamw(adam, w.data(), m.data(), v.data(), g.data(), scale, count);
        CHECK(distance(doubles(whole.w), w) <= near);
        CHECK(distance(doubles(whole.m), m) <= near);
        CHECK(distance(doubles(whole.v), v) <= near);
        for (const auto& [first, length] : {std::pair{std::int64_t{0}, count / 3}, {count / 3, count - count / 3}}) {
          const auto part = [first = first, length = length](const Tensor& t) { return t.slice().narrow(first, length); };
          adamw(adam, part(cut.w), part(cut.m), part(cut.v), part(cut.g), scale, {2});
        }
        CHECK(same_bits(whole.w, cut.w));
        CHECK(same_bits(whole.m, cut.m));
        CHECK(same_bits(whole.v, cut.v));

        w = doubles(whole.w), m = doubles(whole.m);
        sgd(momentum, whole.w.slice(), whole.m.slice(), whole.g.slice(), scale, {1});
        sgd(momentum, cut.w.slice(), cut.m.slice(), cut.g.slice(), scale, {2});
        reference::sgd(momentum, w.data(), m.data(), g.data(), scale, count);
        CHECK(distance(doubles(whole.w), w) <= near);
        CHECK(distance(doubles(whole.m), m) <= near);
        CHECK(same_bits(whole.w, cut.w));
        CHECK(same_bits(whole.m, cut.m));
      }
}

TEST_CASE("optimizer steps: the first step of AdamW by hand, and NaN in a gradient reaches the weight") {
  Desk desk;
  const Tensor w = desk.filled({2}, DType::f32, 2), m = desk.filled({2}, DType::f32, 0), v = desk.filled({2}, DType::f32, 0);
  const Tensor g = desk.filled({2}, DType::f32, -3);
  g.values<float>()[1] = NAN;
  adamw(adam, w.slice(), m.slice(), v.slice(), g.slice(), 1, {});
  CHECK(w.values<float>()[0] ==
        Approx(2 - 1e-2 * (-1 + 0.1 * 2)));  // m·c₁ = g and v·c₂ = g²: a step of the sign, and the decay
  CHECK(std::isnan(w.values<float>()[1]));
  CHECK_THROWS(adamw(adam, w.slice(), m.slice(), v.slice().narrow(0, 1), g.slice(), 1, {}));
  CHECK_THROWS(sgd(momentum, w.slice(), desk.filled({2}, DType::f64, 0).slice(), g.slice(), 1, {}));
  CHECK_THROWS(sgd(momentum, w.slice(), m.slice(), desk.filled({2}, DType::bf16, 0).slice(), 1, {}));
}

TEST_CASE("optimizer steps: casts round to the nearest, once, and to even in the middle") {
  Desk desk;
  for (const DType from : floating_dtypes)
    for (const DType to : floating_dtypes) {
      INFO(name_of(from) << " to " << name_of(to));
      const Tensor x = desk.random({33}, from, 4), y = desk.empty({33}, to), again = desk.empty({33}, to);
      cast(x.slice(), y.slice(), {1});
      cast(x.slice(), again.slice(), {2});
      CHECK(distance(doubles(y), doubles(x)) <= std::max(tolerance(to), 1e-7));
      CHECK(same_bits(y, again));
    }
  // Just above and below the middle of two neighbours, nearer to it than a float can tell.
  const double above = 1 + 0x1p-8 + 0x1p-40, middle = 1 + 0x1p-8, below = 1 + 0x3p-8 - 0x1p-40;
  const double numbers[] = {above, middle, below, -above, -middle, -below, 1e300, -1e300, 1e-300, -1e-300, NAN, -0.0};
  const float wanted[] = {1 + 0x1p-7f, 1,         1 + 0x1p-7f, -1 - 0x1p-7f, -1,  -1 - 0x1p-7f,
                          INFINITY,    -INFINITY, 0,           -0.0f,        NAN, -0.0f};
  const Tensor x = desk.empty({12}, DType::f64), y = desk.empty({12}, DType::bf16);
  std::copy(std::begin(numbers), std::end(numbers), x.values<double>().begin());
  cast(x.slice(), y.slice(), {});
  for (std::size_t i = 0; i < 12; ++i) {
    INFO(numbers[i]);
    const float value = y.values<bf16>()[i];
    CHECK((value == wanted[i] || (std::isnan(value) && std::isnan(wanted[i]))));
    if (!std::isnan(wanted[i])) CHECK(std::signbit(value) == std::signbit(wanted[i]));
  }
  CHECK_THROWS(cast(x.slice(), y.slice().narrow(0, 3), {}));
}

TEST_CASE("how fast optimizer steps are", "[!benchmark]") {
  for (const std::int64_t count : {2048 * 384, 4096 * 768}) {
    Weights a(16, DType::f32, DType::f32);
    const Tensor w = a.desk.random({count}, DType::f32), m = a.desk.random({count}, DType::f32);
    const Tensor v = a.desk.filled({count}, DType::f32, 1), g = a.desk.random({count}, DType::f32);
    const Tensor small = a.desk.empty({count}, DType::bf16);
    BENCHMARK(moving("adamw", w, 7 * w.bytes())) { adamw(adam, w.slice(), m.slice(), v.slice(), g.slice(), 1, {}); };
    BENCHMARK(moving("sgd", w, 5 * w.bytes())) { sgd(momentum, w.slice(), m.slice(), g.slice(), 1, {}); };
    BENCHMARK(moving("cast to bf16", w, w.bytes() + small.bytes())) { cast(w.slice(), small.slice(), {}); };
  }
}
