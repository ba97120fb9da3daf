#include "src/math/optimizer_steps.hpp"

#include <array>

#include "src/math/cast.hpp"
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
    w = desk.random({count}, dtype);
    m = desk.random({count}, dtype);
    v = desk.random({count}, dtype);
    std::int64_t i = 0;
    for (const double value : doubles(v)) put(v, i++, std::abs(value));
    g = desk.random({count}, gradient, gradient == DType::i64 ? 0x1p40 : 1);
  }

  UpdateRange range(std::int64_t first, std::int64_t length, double scale = 1) const {
    const auto part = [&](const Tensor& t) { return t.slice().narrow(first, length); };
    return {.weights = part(w), .moments = {part(m), part(v)}, .gradient = part(g), .scale = scale};
  }
  std::array<UpdateRange, 1> all(double scale = 1) const { return {range(0, w.count(), scale)}; }
  std::array<UpdateRange, 2> two(double scale) const {
    const std::int64_t third = w.count() / 3;
    return {range(0, third, scale), range(third, w.count() - third, scale)};
  }
};

}  // namespace

TEST_CASE("optimizer steps: the fast kernels give the reference's values, with the same bits however the tensors are cut") {
  for (const DType dtype : {DType::f32, DType::f64})
    for (const DType gradient : {DType::f32, DType::f64, DType::i64, DType::bf16})
      for (const std::int64_t count : odd_sizes) {
        INFO(name_of(dtype) << " gradients " << name_of(gradient) << " " << count);
        const double scale = gradient == DType::i64 ? 0x1p-41 : 0.5;
        Weights whole(count, dtype, gradient), cut(count, dtype, gradient);
        auto w = doubles(whole.w), m = doubles(whole.m), v = doubles(whole.v), g = doubles(whole.g);
        const double near = dtype == DType::f32 ? 1e-6 : 1e-15;

        adamw(adam, whole.all(scale), {1});
        reference::adamw(adam, w.data(), m.data(), v.data(), g.data(), scale, count);
        CHECK(distance(doubles(whole.w), w) <= near);
        CHECK(distance(doubles(whole.m), m) <= near);
        CHECK(distance(doubles(whole.v), v) <= near);
        adamw(adam, cut.two(scale), {2});
        CHECK(same_bits(whole.w, cut.w));
        CHECK(same_bits(whole.m, cut.m));
        CHECK(same_bits(whole.v, cut.v));

        w = doubles(whole.w);
        m = doubles(whole.m);
        sgd(momentum, whole.all(scale), {1});
        sgd(momentum, cut.two(scale), {2});
        reference::sgd(momentum, w.data(), m.data(), g.data(), scale, count);
        CHECK(distance(doubles(whole.w), w) <= near);
        CHECK(distance(doubles(whole.m), m) <= near);
        CHECK(same_bits(whole.w, cut.w));
        CHECK(same_bits(whole.m, cut.m));
      }
}

TEST_CASE("optimizer steps: the first step of AdamW has the value computed by hand, and a NaN gradient gives a NaN weight") {
  Desk desk;
  const Tensor w = desk.filled({3}, DType::f32, 2), m = desk.filled({3}, DType::f32, 0), v = desk.filled({3}, DType::f32, 0);
  const Tensor g = desk.filled({3}, DType::f32, -3);
  g.values<float>()[1] = NAN;
  const UpdateRange whole{.weights = w.slice(), .moments = {m.slice(), v.slice()}, .gradient = g.slice()};
  UpdateRange first{whole.weights.narrow(0, 2), {m.slice().narrow(0, 2), v.slice().narrow(0, 2)}, g.slice().narrow(0, 2)};
  UpdateRange last{whole.weights.narrow(2, 1), {m.slice().narrow(2, 1), v.slice().narrow(2, 1)}, g.slice().narrow(2, 1)};
  last.decays = false;
  adamw(adam, std::array{first, last}, {});
  CHECK(w.values<float>()[0] ==
        Approx(2 - 1e-2 * (-1 + 0.1 * 2)));  // m·c₁ = g and v·c₂ = g², so the step is rate · sign(g), plus decay
  CHECK(std::isnan(w.values<float>()[1]));
  CHECK(w.values<float>()[2] == Approx(2 + 1e-2));

  const auto refused = [&](UpdateRange bad) {
    CHECK_THROWS(adamw(adam, std::array{whole, bad}, {}));
    CHECK_THROWS(sgd(momentum, std::array{whole, bad}, {}));
  };
  UpdateRange bad = whole;
  bad.moments[0] = bad.moments[0].narrow(0, 1);
  refused(bad);
  bad.moments[0] = desk.filled({3}, DType::f64, 0).slice();
  refused(bad);
  bad = whole;
  bad.gradient = desk.filled({3}, DType::f16, 0).slice();
  refused(bad);
  bad = whole;
  bad.value = desk.filled({3}, DType::f32, 0).slice();
  refused(bad);
  bad = whole;
  bad.weights = desk.filled({3}, DType::f16, 0).slice();
  refused(bad);
}

TEST_CASE("optimizer steps: a bf16 gradient gives the bits of the f32 gradient with its value") {
  constexpr std::int64_t count = 5003;
  for (const DType dtype : {DType::f32, DType::f64}) {
    Weights narrow(count, dtype, DType::bf16), wide(count, dtype, DType::bf16);
    const Tensor g = wide.desk.random({count}, DType::f32);
    cast(wide.g.slice(), g.slice(), {1});
    wide.g = g;
    adamw(adam, narrow.all(0.3), {1});
    adamw(adam, wide.all(0.3), {1});
    sgd(momentum, narrow.all(0.3), {2});
    sgd(momentum, wide.all(0.3), {2});
    CHECK(same_bits(narrow.w, wide.w));
    CHECK(same_bits(narrow.m, wide.m));
    CHECK(same_bits(narrow.v, wide.v));
  }
}

TEST_CASE("optimizer steps: 16-bit values are rounded to nearest from their masters in the same pass") {
  for (const DType narrow : {DType::bf16, DType::f16}) {
    Weights weights(5003, DType::f32, DType::f32);
    const Tensor value = weights.desk.random({5003}, narrow), wanted = weights.desk.random({5003}, narrow);
    auto ranges = weights.two(0.5);
    ranges[0].value = value.slice().narrow(0, ranges[0].weights.count);
    ranges[1].value = value.slice().narrow(ranges[0].weights.count, ranges[1].weights.count);
    adamw(adam, ranges, {2});
    cast(weights.w.slice(), wanted.slice(), {1});
    CHECK(same_bits(value, wanted));
  }
}

TEST_CASE("optimizer steps: stochastic rounding picks the nearer neighbor with the higher probability") {
  const float low = 1, high = 1 + 0x1p-7f;
  for (const float share : {0.0f, 0.25f, 0.6f}) {
    const float value = low + share * (high - low);
    int up = 0;
    for (std::uint32_t chance = 0; chance < 0x10000; ++chance) {
      const float rounded = rounded_by(chance, value);
      up += rounded == high;
      if (rounded != low && rounded != high) FAIL(rounded);
    }
    CHECK(up == Approx(share * 0x10000).margin(1));
    CHECK(static_cast<float>(rounded_by(0xffff, -value)) == (share > 0 ? -high : -low));
  }
  CHECK(static_cast<float>(rounded_by(0xffff, INFINITY)) == INFINITY);
  CHECK(std::isnan(static_cast<float>(rounded_by(0xffff, NAN))));
}

TEST_CASE("optimizer steps: bf16 without masters follows small updates on average, and a shard has the bits of the whole") {
  constexpr std::int64_t rows = 40, columns = 130;
  const SgdStep plain{.rate = 1, .momentum = 0, .decay = 0};
  constexpr double smaller = 0x1p-12;  // less than half of 2^-7, the unit in the last place of 1
  Desk desk;
  const auto updated = [&](Places places, std::int64_t count, int steps, int threads) {
    const Tensor w = desk.filled({count}, DType::bf16, 1), m = desk.filled({count}, DType::f32, 0);
    const Tensor g = desk.filled({count}, DType::f32, -smaller);
    for (int step = 1; step <= steps; ++step) {
      UpdateRange range{.weights = w.slice(), .moments = {m.slice()}, .gradient = g.slice(), .places = places};
      range.random = {.seed = 3, .step = static_cast<std::uint32_t>(step), .site = 9};
      sgd(plain, std::array{range}, {threads});
    }
    return w;
  };
  const Tensor whole = updated({.length = columns, .columns = columns}, rows * columns, 8, 1);
  double sum = 0;
  for (const double w : doubles(whole)) sum += w - 1;
  CHECK(sum / (rows * columns) == Approx(8 * smaller).epsilon(0.1));

  const Tensor rows_of_it = updated({.length = columns, .columns = columns, .first_row = 17}, 5 * columns, 8, 2);
  CHECK(same_bits(rows_of_it, whole.narrow(17 * columns, 5 * columns)));
  const Tensor columns_of_it =
      updated({.first = 11, .length = 30, .columns = columns, .first_row = 0, .first_column = 60}, 500, 8, 2);
  for (std::int64_t i = 0; i < 500; ++i) {
    const std::int64_t at = 11 + i, place = at / 30 * columns + 60 + at % 30;
    CHECK(doubles(columns_of_it)[static_cast<std::size_t>(i)] == doubles(whole)[static_cast<std::size_t>(place)]);
  }
}

TEST_CASE("optimizer steps: casts round once, to nearest, ties to even") {
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
  // Values just above and below the midpoint of two neighboring bf16 values, nearer to the midpoint than f32 can represent.
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
    Weights a(count, DType::f32, DType::f32);
    const Tensor &w = a.w, small = a.desk.empty({count}, DType::bf16);
    auto ranges = a.all(1);
    BENCHMARK(moving("adamw", w, 28 * count)) { adamw(adam, ranges, {}); };
    BENCHMARK(moving("sgd", w, 20 * count)) { sgd(momentum, ranges, {}); };
    BENCHMARK(moving("cast to bf16", w, 6 * count)) { cast(w.slice(), small.slice(), {}); };
    ranges[0].value = small.slice();
    BENCHMARK(moving("adamw with bf16 values", w, 30 * count)) { adamw(adam, ranges, {}); };
    ranges[0].value = {};
    ranges[0].weights = small.slice();
    BENCHMARK(moving("adamw of bf16 without masters", small, 24 * count)) { adamw(adam, ranges, {}); };
  }
}
