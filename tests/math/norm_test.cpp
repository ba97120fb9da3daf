#include "src/math/norm.hpp"

#include "src/math/reference/norm.hpp"
#include "tests/math/kernels.hpp"

using namespace chorale;

namespace {

constexpr NormKind kinds[] = {NormKind::layer, NormKind::rms};
constexpr double epsilon = 1e-5;

struct NormCase {
  Desk desk;
  Tensor x, gain, shift, y, stats, dy, dx, around;
  NormCase(std::int64_t rows, std::int64_t width, DType dtype) {
    const DType statistic = dtype == DType::f64 ? DType::f64 : DType::f32;
    x = desk.random({rows, width}, dtype, 2);
    dy = desk.random({rows, width}, dtype);
    gain = desk.random({width}, dtype);
    shift = desk.random({width}, dtype);
    y = desk.empty({rows, width}, dtype);
    dx = desk.empty({rows, width}, dtype);
    around = desk.random({rows, width}, dtype);
    stats = desk.empty({rows, 2}, statistic);
  }
};

}  // namespace

TEST_CASE("norms: the reference's gradient matches finite differences") {
  const std::int64_t rows = 2, width = 7;
  NormCase c(rows, width, DType::f64);
  const auto x = doubles(c.x), gain = doubles(c.gain), shift = doubles(c.shift), dy = doubles(c.dy);
  for (const NormKind kind : kinds) {
    std::vector<double> y(x.size()), stats(2 * rows), dx(x.size());
    const auto loss = [&](const std::vector<double>& at) {
      reference::norm_forward(kind, at.data(), gain.data(), shift.data(), epsilon, y.data(), stats.data(), rows, width);
      double sum = 0;
      for (std::size_t i = 0; i < y.size(); ++i) sum += y[i] * dy[i];
      return sum;
    };
    const auto wanted = numerical_gradient(loss, x);
    loss(x);
    reference::norm_backward<double>(kind, dy.data(), x.data(), gain.data(), stats.data(), nullptr, dx.data(), rows, width);
    CHECK(distance(dx, wanted) <= 1e-6);
  }
}

TEST_CASE("norms: the fast kernels give the reference's values, with the same bits on one thread and two") {
  for (const NormKind kind : kinds)
    for (const DType dtype : floating_dtypes)
      for (const std::int64_t width : odd_sizes)
        for (const std::int64_t rows : {1, 3, 5}) {
          if (width == 1) continue;  // one normalized value is 0 or ±1, so the gradient is only rounding error
          INFO((kind == NormKind::layer ? "layer " : "rms ") << name_of(dtype) << " " << rows << " × " << width);
          NormCase c(rows, width, dtype);
          const auto x = doubles(c.x), gain = doubles(c.gain), shift = doubles(c.shift);
          std::vector<double> y(x.size()), dx(x.size()), stats(static_cast<std::size_t>(2 * rows));

          norm_forward(kind, c.x, c.gain, &c.shift, epsilon, c.y, c.stats, {1});
          reference::norm_forward(kind, x.data(), gain.data(), shift.data(), epsilon, y.data(), stats.data(), rows, width);
          CHECK(distance(doubles(c.y), y) <= tolerance(dtype));
          CHECK(distance(doubles(c.stats), stats) <= 1e-5);

          const auto kept = doubles(c.stats), dy = doubles(c.dy), around = doubles(c.around);
          norm_backward(kind, c.dy, c.x, c.gain, c.stats, &c.around, c.dx, {1});
          reference::norm_backward(kind, dy.data(), x.data(), gain.data(), kept.data(), around.data(), dx.data(), rows,
                                   width);
          CHECK(distance(doubles(c.dx), dx) <= tolerance(dtype));

          const Tensor again = c.desk.empty(c.y.shape(), dtype),
                       stats_again = c.desk.empty(c.stats.shape(), c.stats.dtype());
          norm_forward(kind, c.x, c.gain, &c.shift, epsilon, again, stats_again, {2});
          CHECK(same_bits(c.y, again));
          CHECK(same_bits(c.stats, stats_again));
          norm_backward(kind, c.dy, c.x, c.gain, c.stats, &c.around, c.around, {2});  // in place
          CHECK(same_bits(c.dx, c.around));

          norm_forward(kind, c.x, c.gain, nullptr, epsilon, c.y, c.stats, {1});
          norm_backward(kind, c.dy, c.x, c.gain, c.stats, nullptr, c.dx, {1});
          reference::norm_forward<double>(kind, x.data(), gain.data(), nullptr, epsilon, y.data(), stats.data(), rows,
                                          width);
          reference::norm_backward<double>(kind, dy.data(), x.data(), gain.data(), kept.data(), nullptr, dx.data(), rows,
                                           width);
          CHECK(distance(doubles(c.y), y) <= tolerance(dtype));
          CHECK(distance(doubles(c.dx), dx) <= tolerance(dtype));
        }
}

TEST_CASE("norms: a large mean does not cancel the variance, and NaN stays in its row") {
  NormCase c(3, 100, DType::f32);
  for (float& v : c.x.values<float>()) v += 1000;
  const auto x = doubles(c.x), gain = doubles(c.gain);
  std::vector<double> y(300), stats(6);
  norm_forward(NormKind::layer, c.x, c.gain, nullptr, epsilon, c.y, c.stats, {});
  reference::norm_forward<double>(NormKind::layer, x.data(), gain.data(), nullptr, epsilon, y.data(), stats.data(), 3, 100);
  CHECK(distance(doubles(c.y), y) <= 1e-3);
  c.x.values<float>()[142] = NAN;
  for (const NormKind kind : kinds) {
    norm_forward(kind, c.x, c.gain, nullptr, epsilon, c.y, c.stats, {});
    norm_backward(kind, c.dy, c.x, c.gain, c.stats, nullptr, c.dx, {});
    for (std::size_t i = 0; i < 300; ++i) {
      REQUIRE(std::isnan(c.y.values<float>()[i]) == (i / 100 == 1));
      REQUIRE(std::isnan(c.dx.values<float>()[i]) == (i / 100 == 1));
    }
  }
  CHECK_THROWS(norm_forward(NormKind::layer, c.x, c.gain, nullptr, epsilon, c.y, c.stats.narrow(0, 2), {}));
  CHECK_THROWS(norm_forward(NormKind::layer, c.x, c.gain, &c.stats, epsilon, c.y, c.stats, {}));
}

TEST_CASE("how fast norms are", "[!benchmark]") {
  for (const DType dtype : {DType::f32, DType::bf16})
    for (const auto& [rows, width] : {std::pair{2048, 384}, std::pair{4096, 768}}) {
      NormCase c(rows, width, dtype);
      BENCHMARK(moving("layer norm", c.x, 2 * c.x.bytes())) {
        norm_forward(NormKind::layer, c.x, c.gain, &c.shift, epsilon, c.y, c.stats, {});
      };
      BENCHMARK(moving("its gradient", c.x, 4 * c.x.bytes())) {
        norm_backward(NormKind::layer, c.dy, c.x, c.gain, c.stats, &c.around, c.dx, {});
      };
    }
}
