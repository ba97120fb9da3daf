// Compares attention in bf16 with the reference in double. Tests every engine of this machine, and emulated AMX tiles.
//
// The inputs are bf16, so they are exact in the reference. Roundings to bf16 have a relative error of at most u = 2⁻⁸.
// P, dS and the results are rounded. If the gradients are computed from the engine's own `out`, the errors are at most
//
//   out    u·(Σ p·|v| + |out|)          over keys
//   dV     u·(Σ p·|do| + |dV|)          over queries
//   dK     u·(Σ |dS|·|q| + |dK|)        over queries
//   dQ     u·(Σ |dS|·|k| + |dQ|)        over keys
//
// to first order, plus the rounding errors of f32. For the rounding errors of f32, the tests allow an additional 1 percent
// and 10⁻⁵.
#include <algorithm>

#include "src/math/bf16/attention.hpp"
#include "src/math/bf16/engines.hpp"
#include "src/math/reference/attention.hpp"
#include "tests/catch.hpp"
#include "tests/math/bf16/emulated_tiles.hpp"
#include "tests/math/checks.hpp"

using namespace chorale;
using namespace chorale::attention;

namespace {

void attend_emulated(Bf16Queries& queries, std::int64_t width, const Bf16Keys& keys, const Drops& drops) {
  attend_tiles<EmulatedTiles>(queries, width, keys, drops);
}
void backward_emulated(Bf16Gradients& g, std::int64_t query, std::int64_t rows, std::int64_t key, const Drops& drops,
                       const KeyGradients& sums) {
  add_tile_gradients<EmulatedTiles>(g, query, rows, key, drops, sums);
}

std::vector<Bf16Kernels> engines_and_emulation() {
  std::vector<Bf16Kernels> all = bf16_engines();
  all.push_back({"emulated amx", attend_emulated, backward_emulated});
  return all;
}

struct Case {
  Case(Desk& desk, std::int64_t tokens, const AttentionShape& shape, double probability)
      : tokens(tokens),
        shape(shape),
        dropout{.probability = probability, .random = {.seed = 3}, .tokens = {.sequence = tokens, .tokens = tokens}},
        qkv(desk.random({samples * tokens, shape.columns()}, DType::bf16, 2)),
        dout(desk.random({samples * tokens, shape.heads() * shape.width}, DType::bf16)),
        out(desk.filled(dout.shape(), DType::bf16, NAN)),
        lse(desk.filled({samples * tokens, shape.heads()}, DType::f32, NAN)),
        dqkv(desk.filled(qkv.shape(), DType::bf16, NAN)) {}
  void run(const Bf16Kernels& kernels) const {
    const AttentionInput in = whole_sequences(qkv, shape, dropout);
    forward_in_bf16(kernels, in, out, lse, {});
    backward_in_bf16(kernels, in, dout, out, lse, dqkv, in.keys.in(dqkv), {});
  }
  static constexpr std::int64_t samples = 2;
  std::int64_t tokens;
  AttentionShape shape;
  Dropout dropout;
  Tensor qkv, dout, out, lse, dqkv;
};

// The results in double, and the sums of magnitudes in the bounds above. The gradients are computed from the engine's `out`.
struct Bounded {
  explicit Bounded(const Case& c)
      : out(doubles(c.out).size()), lse(doubles(c.lse).size()), dqkv(doubles(c.qkv).size()), out_sum(out), dqkv_sum(dqkv) {
    const std::vector<double> qkv = doubles(c.qkv), dout = doubles(c.dout), found = doubles(c.out);
    const std::int64_t width = c.shape.width, heads = c.shape.heads();
    const double scale = 1 / std::sqrt(static_cast<double>(width));
    for (std::int64_t row = 0; row < c.samples * c.tokens; ++row)
      for (std::int64_t head = 0; head < heads; ++head) {
        const std::int64_t first = row / c.tokens * c.tokens, place = (row * heads + head) * width;
        const auto query = static_cast<std::size_t>(first_query(c.shape, row, head));
        const auto key_of = [&](std::int64_t other) {
          const std::int64_t group = head / c.shape.queries;
          return static_cast<std::size_t>(first_query(c.shape, other, group * c.shape.queries) + c.shape.queries * width);
        };
        const auto w = static_cast<std::size_t>(width), o = static_cast<std::size_t>(place);
        std::vector<double> p;
        double sum = 0, both = 0;
        for (std::int64_t other = first; other <= row; ++other) {
          double score = 0;
          for (std::size_t i = 0; i < w; ++i) score += qkv[query + i] * qkv[key_of(other) + i];
          sum += p.emplace_back(std::exp(scale * score));
        }
        lse[static_cast<std::size_t>(row * heads + head)] = std::log(sum);
        for (std::size_t i = 0; i < w; ++i) both += dout[o + i] * found[o + i];
        for (std::int64_t other = first; other <= row; ++other) {
          const double weight = p[static_cast<std::size_t>(other - first)] / sum;
          const std::size_t key = key_of(other), value = key + w;
          double dp = 0;
          for (std::size_t i = 0; i < w; ++i) dp += dout[o + i] * qkv[value + i];
          const double ds = scale * weight * (dp - both);
          for (std::size_t i = 0; i < w; ++i) {
            add(out, out_sum, o + i, weight * qkv[value + i]);
            add(dqkv, dqkv_sum, query + i, ds * qkv[key + i]);
            add(dqkv, dqkv_sum, key + i, ds * qkv[query + i]);
            add(dqkv, dqkv_sum, value + i, weight * dout[o + i]);
          }
        }
      }
  }
  static void add(std::vector<double>& sum, std::vector<double>& magnitude, std::size_t i, double term) {
    sum[i] += term;
    magnitude[i] += std::abs(term);
  }
  std::vector<double> out, lse, dqkv, out_sum, dqkv_sum;
};

// Returns the largest ratio of an error to the bound of this error.
double of_bound(const std::vector<double>& found, const std::vector<double>& wanted, const std::vector<double>& sums) {
  constexpr double u = 0x1p-8;
  double worst = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double bound = 1.01 * u * (sums[i] + std::abs(wanted[i])) + 1e-5;
    const double error = std::abs(found[i] - wanted[i]) / bound;
    worst = error <= worst ? worst : error;  // NaN becomes the worst error
  }
  return worst;
}

}  // namespace

TEST_CASE("bf16 attention is within the bounds of its roundings, by every engine") {
  for (const Bf16Kernels& kernels : engines_and_emulation())
    for (const std::int64_t tokens : {1, 15, 64, 131})
      for (const std::int64_t width : {3, 16, 31, 64, 80}) {
        Desk desk;
        const Case c(desk, tokens, {.groups = 2, .queries = 1 + width % 2, .width = width, .all_heads = 4}, 0);
        c.run(kernels);
        const Bounded wanted(c);
        INFO(kernels.name << ": " << tokens << " tokens, width " << width);
        CHECK(of_bound(doubles(c.out), wanted.out, wanted.out_sum) <= 1);
        CHECK(of_bound(doubles(c.dqkv), wanted.dqkv, wanted.dqkv_sum) <= 1);
        CHECK(distance(doubles(c.lse), wanted.lse) < 1e-5);
      }
}

TEST_CASE("the engine of bf16 attention is found by its name") {
  CHECK_FALSE(bf16_engine("f32"));
  const std::vector<Bf16Kernels> all = bf16_engines();
  for (const Bf16Kernels& kernels : all) CHECK(bf16_engine(kernels.name)->attend == kernels.attend);
  const bool faster = !all.empty() && (all.front().name == std::string_view("amx") || __builtin_cpu_is("amd"));
  const auto chosen = bf16_engine("");
  CHECK(chosen.has_value() == faster);
  if (chosen) CHECK(chosen->attend == all.front().attend);
  CHECK_THROWS_WITH(bf16_engine("sse"), Catch::Contains("CHORALE_BF16_ATTENTION=sse"));
}

TEST_CASE("bf16 attention drops the same weights by every engine as in f32") {
  Desk desk;
  const Case first(desk, 100, {.groups = 1, .queries = 2, .width = 40, .all_heads = 2}, 0.3);
  const AttentionInput in = whole_sequences(first.qkv, first.shape, first.dropout);
  forward<bf16, bf16, KeyTiles>(in, first.out, first.lse, {}, [] { return QueryTile(40); });
  backward<bf16, bf16>(in, first.dout, first.out, first.lse, first.dqkv, in.keys.in(first.dqkv), {},
                       [] { return Gradients(100, 100, 40); });
  for (const Bf16Kernels& kernels : engines_and_emulation()) {
    Case other = first;
    other.out = desk.filled(first.out.shape(), DType::bf16, NAN);
    other.dqkv = desk.filled(first.dqkv.shape(), DType::bf16, NAN);
    other.run(kernels);
    INFO(kernels.name);
    CHECK(distance(doubles(other.out), doubles(first.out)) < 1e-2);  // P and dS are rounded to bf16
    CHECK(distance(doubles(other.dqkv), doubles(first.dqkv)) < 1e-2);
  }
}
