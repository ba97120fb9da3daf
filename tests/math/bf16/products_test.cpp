// Tests the matrix products inside bf16 attention, for every engine of this machine and for emulated AMX tiles.
#include <vector>

#include "src/math/bf16/amx.hpp"
#include "src/math/bf16/engines.hpp"
#include "tests/catch.hpp"
#include "tests/math/bf16/emulated_tiles.hpp"
#include "tests/math/checks.hpp"

using namespace chorale;
using bf16_products::Amx;
using bf16_products::Tiles;
using bf16_products::Vectors;

namespace {

bool machine_has(const std::string& engine) {
  for (const attention::Bf16Kernels& kernels : attention::bf16_engines())
    if (engine == kernels.name) return true;
  return false;
}

struct Operands {
  Operands(std::int64_t rows, std::int64_t columns, std::int64_t depth)
      : rows(rows),
        columns(columns),
        depth(depth),
        a(random_words(rows * a_row(), 1)),
        b(random_words(depth * b_row(), 2)),
        c(static_cast<std::size_t>(rows * c_row())) {
    const Random random{.seed = 5, .site = 3};
    for (std::size_t i = 0; i < c.size(); ++i) c[i] = static_cast<float>(random.uniform(i));
  }
  // In memory, a row is longer than the matrix is wide. The number of extra elements differs between the matrices.
  std::int64_t a_row() const { return depth + 5; }
  std::int64_t b_row() const { return columns + 16; }
  std::int64_t c_row() const { return columns + 3; }
  Word left(std::int64_t i, std::int64_t k) const { return a[static_cast<std::size_t>(i * a_row() + k)]; }
  Word right(std::int64_t k, std::int64_t j) const { return b[static_cast<std::size_t>(k * b_row() + j)]; }

  template <class Engine>
  std::vector<float> product(bool adds) const {
    std::vector<float> result = c;
    const auto run = adds ? Engine::template product<true> : Engine::template product<false>;
    [[maybe_unused]] const typename Engine::Session session;
    run(rows, columns, depth, {a.data(), a_row()}, {b.data(), b_row()}, {result.data(), c_row()});
    return result;
  }
  // Sets each element to `f(c, i, j)`, with 0 in place of c if `adds` is false. Padding elements between the rows are
  // unchanged.
  template <class F>
  std::vector<float> each(bool adds, F&& f) const {
    std::vector<float> result = c;
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < columns; ++j) {
        float& element = result[static_cast<std::size_t>(i * c_row() + j)];
        element = f(adds ? element : 0.0f, i, j);
      }
    return result;
  }

  std::int64_t rows, columns, depth;
  std::vector<Word> a, b;
  std::vector<float> c;

 private:
  static std::vector<Word> random_words(std::int64_t count, std::uint32_t site) {
    std::vector<Word> words(static_cast<std::size_t>(count));
    const Random random{.seed = 5, .site = site};
    for (std::size_t i = 0; i < words.size(); ++i)
      words[i] =
          word_of(static_cast<float>(2 * random.uniform(2 * i) - 1), static_cast<float>(random.uniform(2 * i + 1) - 0.5));
    return words;
  }
};

template <class F>
void for_each_size(F&& f) {
  for (const std::int64_t rows : {16, 48})
    for (const std::int64_t columns : {16, 32, 48, 64, 112})
      for (const std::int64_t depth : {8, 16, 24, 64})
        for (const bool adds : {false, true}) {
          INFO(rows << " × " << columns << ", " << depth << " words deep" << (adds ? ", added" : ""));
          f(Operands(rows, columns, depth), adds);
        }
}

}  // namespace

TEST_CASE("bf16 products by tiles are those of the matrices") {
  for_each_size([](const Operands& x, bool adds) {
    const std::vector<float> found = x.product<EmulatedTiles>(adds);
    // A chain of n additions makes at most n rounding errors, in sums of at most n.
    const auto wanted = x.each(adds, [&](float c, std::int64_t i, std::int64_t j) {
      double sum = c;
      for (std::int64_t k = 0; k < x.depth; ++k) {
        sum += static_cast<double>(low_half(x.left(i, k))) * low_half(x.right(k, j));
        sum += static_cast<double>(high_half(x.left(i, k))) * high_half(x.right(k, j));
      }
      return static_cast<float>(sum);
    });
    for (std::size_t i = 0; i < wanted.size(); ++i) REQUIRE(std::abs(found[i] - wanted[i]) < 1e-5);
  });
}

TEST_CASE("bf16 products by AVX512_BF16 are chains of fused multiply-adds, upper halves first") {
  if (!machine_has("avx512_bf16")) return;
  for_each_size([](const Operands& x, bool adds) {
    const auto wanted = x.each(adds, [&](float sum, std::int64_t i, std::int64_t j) {
      for (std::int64_t k = 0; k < x.depth; ++k) {
        sum = std::fma(high_half(x.left(i, k)), high_half(x.right(k, j)), sum);
        sum = std::fma(low_half(x.left(i, k)), low_half(x.right(k, j)), sum);
      }
      return sum;
    });
    REQUIRE(x.product<Vectors>(adds) == wanted);
  });
}

TEST_CASE("bf16 products by the processor's tiles have the bits of emulated tiles") {
  if (!machine_has("amx")) return;
  for_each_size(
      [](const Operands& x, bool adds) { REQUIRE(x.product<Tiles<Amx, Vectors>>(adds) == x.product<EmulatedTiles>(adds)); });
}

TEST_CASE("AVX512_BF16 rounds floats to words as bf16 rounds") {
  if (!machine_has("avx512_bf16")) return;
  constexpr std::int64_t rows = 6, columns = 48;
  std::vector<float> floats(rows * columns);
  const Random random{.seed = 9};
  for (std::size_t i = 0; i < floats.size(); ++i)  // some values are halfway between two bf16 values
    floats[i] = i % 3 == 0 ? std::bit_cast<float>(static_cast<Word>(0x3f808000u + (i << 16)))
                           : static_cast<float>(random.uniform(i));
  floats[1] = NAN;
  floats[2] = INFINITY;
  floats[4] = -3e38f;
  floats[5] = 3.4e38f;
  std::vector<Word> found(rows * columns / 2), wanted(found);
  Vectors::round_rows({floats.data(), columns}, rows, columns, {found.data(), columns / 2});
  PlainRounding::round_rows({floats.data(), columns}, rows, columns, {wanted.data(), columns / 2});
  REQUIRE(found == wanted);
  Vectors::round_pairs({floats.data(), columns}, rows, columns, {found.data(), columns});
  PlainRounding::round_pairs({floats.data(), columns}, rows, columns, {wanted.data(), columns});
  REQUIRE(found == wanted);
}
