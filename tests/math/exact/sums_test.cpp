#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "src/math/vector_math.hpp"
#include "tests/catch.hpp"
#include "tests/math/exact/bits.hpp"

using namespace chorale;

namespace {

// An order of the rows of a batch, and the number of parts into which the ordered rows are split.
struct Rows {
  std::vector<std::int64_t> order;
  std::int64_t pieces;
};

std::vector<Rows> ways_to_go_through(std::int64_t rows) {
  std::vector<std::int64_t> forward(static_cast<std::size_t>(rows)), backward, mixed;
  std::iota(forward.begin(), forward.end(), 0);
  backward.assign(forward.rbegin(), forward.rend());
  for (std::int64_t i = 0; i < rows; ++i) mixed.push_back(i * 7 % rows);  // a permutation: 7 does not divide `rows`
  return {{forward, 1}, {forward, 2}, {backward, 1}, {mixed, 4}, {mixed, 8}};
}

Tensor in_order(Desk& desk, const Tensor& tensor, const std::vector<std::int64_t>& order) {
  Shape shape = tensor.shape();
  const Tensor mixed = desk.empty(shape, tensor.dtype());
  for (std::size_t i = 0; i < order.size(); ++i)
    std::memcpy(mixed.narrow(static_cast<std::int64_t>(i), 1).slice().data, tensor.narrow(order[i], 1).slice().data,
                static_cast<std::size_t>(tensor.bytes() / tensor.dim(0)));
  return mixed;
}

std::vector<double> times(std::vector<double> values, double unit) {
  for (double& v : values) v *= unit;
  return values;
}

}  // namespace

TEST_CASE("exact sums over tokens are the same in any order, in any pieces, on any threads") {
  Desk desk;
  const auto exact = exact_numerics();
  const std::int64_t rows = 96, width = 131, words = 13;
  const Tensor dy = desk.random({rows, width}, DType::f32), x = desk.random({rows, width}, DType::f32),
               stats = desk.random({rows, 2}, DType::f32), losses = desk.random({rows}, DType::f32, 9),
               ids = desk.empty({rows}, DType::i32);
  for (std::int64_t i = 0; i < rows; ++i)
    ids.values<std::int32_t>()[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(i * i % 20);

  struct Sums {
    Tensor bias, gain, shift, table, loss;
    std::uint32_t highest;
  };
  const auto sums = [&](const Rows& way, int threads) {
    SumSite site{.name = "tokens", .sum = SumOf::token_gradients, .addends = rows},
        of_losses{.name = "losses", .sum = SumOf::losses, .addends = rows};
    const Sums all{zeros(desk, {width}),        zeros(desk, {width}), zeros(desk, {width}),
                   zeros(desk, {words, width}), zeros(desk, {1}),     0};
    const Tensor g = in_order(desk, dy, way.order), v = in_order(desk, x, way.order), s = in_order(desk, stats, way.order),
                 l = in_order(desk, losses, way.order), id = in_order(desk, ids, way.order);
    const std::int64_t length = rows / way.pieces;
    for (std::int64_t first = 0; first < rows; first += length) {
      const Queue queue{threads};
      const auto part = [&](const Tensor& t) { return t.narrow(first, length); };
      exact->add_columns(part(g), all.bias, site, queue);
      exact->add_norm_gradients(NormKind::layer, part(g), part(v), part(s), all.gain, &all.shift, site, queue);
      exact->add_rows(part(id), 3, part(g), all.table, site, queue);
      exact->add_losses(part(l), all.loss, of_losses, {});
    }
    exact->check(site);
    return Sums{all.bias, all.gain, all.shift, all.table, all.loss, site.highest};
  };

  const Sums first = sums({ways_to_go_through(rows)[0].order, 1}, 1);
  for (const Rows& way : ways_to_go_through(rows))
    for (const int threads : {1, 2, 3}) {
      const Sums again = sums(way, threads);
      CHECK(same_bits(again.bias, first.bias));
      CHECK(same_bits(again.gain, first.gain));
      CHECK(same_bits(again.shift, first.shift));
      CHECK(same_bits(again.table, first.table));
      CHECK(same_bits(again.loss, first.loss));
      CHECK(again.highest == first.highest);
    }

  // Compares with sums in double.
  const auto g = doubles(dy), v = doubles(x), s = doubles(stats), l = doubles(losses);
  std::vector<double> bias(width), gain(width), table(words * width);
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < width; ++j) {
      const double here = g[i * width + j];
      bias[j] += here;
      gain[j] += here * (v[i * width + j] - s[2 * i]) * s[2 * i + 1];
      const std::size_t id = i * i % 20;
      if (id >= 3 && id < 3 + words) table[(id - 3) * width + j] += here;
    }
  CHECK(distance(times(doubles(first.bias), 0x1p-36), bias) < 1e-6);
  CHECK(same_bits(first.shift, first.bias));
  CHECK(distance(times(doubles(first.gain), 0x1p-36), gain) < 1e-6);
  CHECK(distance(times(doubles(first.table), 0x1p-36), table) < 1e-6);
  CHECK(doubles(first.loss)[0] * 0x1p-30 == Approx(std::accumulate(l.begin(), l.end(), 0.0)).epsilon(1e-6));
}

TEST_CASE("f32 sums over tokens depend on the order, so the test above can fail") {
  Desk desk;
  const auto values = doubles(desk.random({96 * 131}, DType::f32));
  const auto sum = [&](auto first, auto last) {
    return std::accumulate(first, last, 0.0f, [](float a, double b) { return a + static_cast<float>(b); });
  };
  CHECK(sum(values.begin(), values.end()) != sum(values.rbegin(), values.rend()));
}

TEST_CASE("exact sums of exponentials are the same over any parts of the vocabulary") {
  Desk desk;
  const auto exact = exact_numerics();
  const std::int64_t rows = 37, vocabulary = 203;
  const Tensor logits = desk.random({rows, vocabulary}, DType::f32, 12), maxima = desk.filled({rows}, DType::f32, 12);
  SumSite site{.name = "exponentials", .sum = SumOf::exponentials, .addends = vocabulary};
  const Tensor whole = desk.empty({rows}, DType::i64), part = desk.empty({rows}, DType::i64);
  exact->sum_exponentials(logits, maxima, whole, site, Queue{});
  for (std::int64_t ranks = 1; ranks <= 5; ++ranks) {
    const Tensor total = zeros(desk, {rows});
    for (std::int64_t r = 0; r < ranks; ++r) {
      const std::int64_t first = vocabulary * r / ranks, last = vocabulary * (r + 1) / ranks;
      exact->sum_exponentials(columns_of(desk, logits, first, last - first), maxima, part, site, Queue{2});
      add(total, part);
    }
    CHECK(same_bits(total, whole));
  }
  exact->check(site);
  const auto z = doubles(logits);
  std::vector<double> expected(rows);
  std::int64_t by_hand = 0;
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < vocabulary; ++j) {
      expected[i] += std::exp(z[i * vocabulary + j] - 12);
      if (i == 0) by_hand += std::llrint(math::exp(static_cast<float>(z[j]) - 12.0f) * 0x1p44);
    }
  CHECK(whole.values<std::int64_t>()[0] == by_hand);
  CHECK(distance(times(doubles(whole), exact->unit(site)), expected) < 1e-6);
}

TEST_CASE("the exact norm is the same for any shards and keeps small squares beside large ones") {
  Desk desk;
  const auto exact = exact_numerics();
  const std::int64_t count = 5001;
  const double scale = 0x1p-36 / 100;
  const Tensor gradient = desk.empty({count}, DType::i64);
  const auto from = doubles(desk.random({count}, DType::f32));
  double expected = 0;
  for (std::size_t i = 0; i < from.size(); ++i) {
    gradient.values<std::int64_t>()[i] = std::llrint(from[i] * 0x1p40 * (i == 17 ? 1000.0 : 1.0));
    expected += std::pow(static_cast<double>(gradient.values<std::int64_t>()[i]) * scale, 2);
  }
  SquareSum whole;
  exact->add_squares(std::array{ScaledSlice{gradient.slice(), scale}}, whole, Queue{});
  CHECK(exact->root(whole) == Approx(std::sqrt(expected)).epsilon(1e-6));
  for (std::int64_t ranks = 1; ranks <= 7; ++ranks) {
    SquareSum sum;
    for (std::int64_t r = ranks - 1; r >= 0; --r) {
      const std::int64_t first = count * r / ranks, last = count * (r + 1) / ranks;
      exact->add_squares(std::array{ScaledSlice{gradient.narrow(first, last - first).slice(), scale}}, sum,
                         Queue{1 + static_cast<int>(r) % 3});
    }
    CHECK((sum.exact == whole.exact));
  }

  SquareSum small;  // 10⁴ squares of 2^-26 and one square of 2^13: a sum in double would lose each small square
  exact->add_squares(std::array{ScaledSlice{desk.filled({1}, DType::f32, 0x1p13).slice(), 1}}, small, Queue{});
  exact->add_squares(std::array{ScaledSlice{desk.filled({10000}, DType::f32, 0x1p-26).slice(), 1}}, small, Queue{2});
  CHECK((small.exact == (static_cast<__int128>(1) << 106) + 10000 * (static_cast<__int128>(1) << 28)));
}
