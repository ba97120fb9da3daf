#include "src/math/cross_entropy.hpp"

#include "src/math/reference/cross_entropy.hpp"
#include "tests/math/kernels.hpp"

using namespace chorale;

namespace {

// The losses and gradients of rows of logits. The columns of the logits are split into parts, as tensor-parallel ranks split
// the vocabulary. The maxima of the parts are reduced by max. The sums of exponentials are added. The `hits` (the logit of
// the target, or 0) are also added.
struct Parts {
  Desk desk;
  std::vector<Tensor> logits;
  std::vector<std::int64_t> first;
  Tensor maxima, sums, hits, targets, losses;

  Parts(const Tensor& whole, std::int64_t cut, const std::vector<std::int32_t>& wanted, DType sum_type, double unit,
        double scale, int threads) {
    const DType statistic = whole.dtype() == DType::f64 ? DType::f64 : DType::f32;
    const std::int64_t rows = whole.dim(0), columns = whole.dim(1);
    const auto all = doubles(whole);
    maxima = desk.filled({rows}, statistic, -INFINITY);
    sums = desk.filled({rows}, sum_type, 0);
    hits = desk.filled({rows}, statistic, 0);
    losses = desk.empty({rows}, statistic);
    targets = desk.empty({rows}, DType::i32);
    std::copy(wanted.begin(), wanted.end(), targets.values<std::int32_t>().begin());
    for (std::int64_t at = 0; at < columns; at += cut) {
      const std::int64_t width = std::min(cut, columns - at);
      const Tensor part = desk.empty({rows, width}, whole.dtype()), greatest = desk.empty({rows}, statistic);
      const Tensor hit = desk.empty({rows}, statistic);
      for (std::int64_t i = 0; i < rows * width; ++i)
        put(part, i, all[static_cast<std::size_t>(i / width * columns + at + i % width)]);
      row_maxima(part, greatest, {threads});
      target_logits(part, targets, at, hit, {threads});
      for (std::int64_t row = 0; row < rows; ++row) {
        const auto r = static_cast<std::size_t>(row);
        put(maxima, row, std::max(doubles(maxima)[r], doubles(greatest)[r]));
        put(hits, row, doubles(hits)[r] + doubles(hit)[r]);
      }
      logits.push_back(part);
      first.push_back(at);
    }
    for (std::int64_t row = 0; row < rows; ++row) {
      double sum = 0;
      for (std::int64_t j = 0; j < columns; ++j)
        sum += std::exp(all[static_cast<std::size_t>(row * columns + j)] - doubles(maxima)[static_cast<std::size_t>(row)]);
      put(sums, row, sum / unit);
    }
    token_losses(maxima, sums, unit, hits, targets, losses, {threads});
    for (std::size_t p = 0; p < logits.size(); ++p)
      cross_entropy_gradient(logits[p], maxima, sums, unit, targets, first[p], scale, {threads});
  }
};

}  // namespace

TEST_CASE("cross entropy: the reference's gradient matches finite differences") {
  Desk desk;
  const auto x = doubles(desk.random({9}, DType::f64, 3));
  const auto loss = [&](const std::vector<double>& at) { return reference::cross_entropy(at.data(), 9, 4); };
  const double maximum = *std::max_element(x.begin(), x.end());
  double sum = 0;
  for (const double v : x) sum += std::exp(v - maximum);
  auto gradient = x;
  reference::cross_entropy_gradient(gradient.data(), maximum, sum, 9, 4, 1.0);
  CHECK(distance(gradient, numerical_gradient(loss, x)) <= 1e-6);
}

TEST_CASE("cross entropy: a split vocabulary gives the loss and gradient of the whole") {
  const double scale = 0.25;
  for (const DType dtype : floating_dtypes)
    for (const std::int64_t columns : {3, 17, 33, 100})
      for (const std::int64_t cut : {columns, std::int64_t{2}, std::int64_t{31}})
        for (const auto& [sum_type, unit] : {std::pair{DType::f32, 1.0}, {DType::f64, 1.0}, {DType::i64, 0x1p-44}}) {
          INFO(name_of(dtype) << " " << columns << " in parts of " << cut << ", sums " << name_of(sum_type));
          Desk desk;
          const Tensor whole = desk.random({4, columns}, dtype, 6);
          const std::vector<std::int32_t> wanted = {0, static_cast<std::int32_t>(columns - 1), -1, 1};
          const Parts one(whole, cut, wanted, sum_type, unit, scale, 1), two(whole, cut, wanted, sum_type, unit, scale, 2);
          auto gradient = doubles(whole);
          std::vector<double> losses(4), maxima(4);
          for (std::size_t row = 0; row < 4; ++row) {
            double* x = gradient.data() + static_cast<std::int64_t>(row) * columns;
            maxima[row] = *std::max_element(x, x + columns);
            losses[row] = wanted[row] < 0 ? 0 : reference::cross_entropy(x, columns, wanted[row]);
            double sum = 0;
            for (std::int64_t j = 0; j < columns; ++j) sum += std::exp(x[j] - maxima[row]);
            if (wanted[row] < 0)
              std::fill_n(x, columns, 0.0);
            else
              reference::cross_entropy_gradient(x, maxima[row], sum, columns, wanted[row], scale);
          }
          const double sums_tell = sum_type == DType::f32 || dtype != DType::f64 ? 1e-6 : 1e-12;
          CHECK(doubles(one.maxima) == maxima);
          CHECK(distance(doubles(one.losses), losses) <= sums_tell);
          std::vector<double> found(gradient.size());
          for (std::size_t p = 0; p < one.logits.size(); ++p) {
            const auto part = doubles(one.logits[p]);
            const std::int64_t width = one.logits[p].dim(1);
            for (std::int64_t i = 0; i < 4 * width; ++i)
              found[static_cast<std::size_t>(i / width * columns + one.first[p] + i % width)] =
                  part[static_cast<std::size_t>(i)];
            CHECK(same_bits(one.logits[p], two.logits[p]));
          }
          CHECK(distance(found, gradient) <= std::max(tolerance(dtype), sums_tell));
          CHECK(same_bits(one.losses, two.losses));
        }
}

TEST_CASE("cross entropy: maxima do not depend on the order, and large logits have finite losses") {
  Desk desk;
  const auto maximum = [&](std::vector<float> row) {
    const Tensor x = desk.empty({1, static_cast<std::int64_t>(row.size())}, DType::f32), m = desk.empty({1}, DType::f32);
    std::copy(row.begin(), row.end(), x.values<float>().begin());
    row_maxima(x, m, {});
    return m.values<float>()[0];
  };
  CHECK_FALSE(std::signbit(maximum({0.0f, -0.0f})));
  CHECK_FALSE(std::signbit(maximum({-0.0f, 0.0f})));
  CHECK(std::signbit(maximum({-0.0f, -0.0f})));
  CHECK(maximum({-5, -3, -INFINITY}) == -3);
  CHECK(maximum({-INFINITY}) == -INFINITY);
  CHECK(std::isnan(maximum({1, NAN, INFINITY})));
  CHECK(std::isnan(maximum({-NAN, 1, 2})));
  const Tensor large = desk.filled({2, 8}, DType::f32, -3e38);
  large.values<float>()[3] = 1e30f;
  large.values<float>()[8] = NAN;
  const Parts parts(large, 8, {2, 5}, DType::f32, 1, 1, 1);
  CHECK(parts.losses.values<float>()[0] == 3e38f);
  const Parts near(large.narrow(0, 1), 8, {3}, DType::f32, 1, 1, 1);
  CHECK(near.losses.values<float>()[0] == 0);
  for (std::size_t j = 8; j < 16; ++j) CHECK(std::isnan(parts.logits[0].values<float>()[j]));
  CHECK_THROWS(row_maxima(large, near.maxima, {}));
}

TEST_CASE("how fast cross entropy is", "[!benchmark]") {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    Desk desk;
    const Tensor x = desk.random({512, 4096}, dtype), maxima = desk.filled({512}, DType::f32, 1);
    const Tensor sums = desk.filled({512}, DType::f32, 4000), targets = desk.filled({512}, DType::i32, 5);
    BENCHMARK(moving("row maxima", x, x.bytes())) { row_maxima(x, maxima, {}); };
    BENCHMARK(moving("gradient", x, 2 * x.bytes())) { cross_entropy_gradient(x, maxima, sums, 1, targets, 0, 1, {}); };
  }
}
