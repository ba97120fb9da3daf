#include "src/math/attention.hpp"

#include <fmt/core.h>

#include <chrono>
#include <cstring>
#include <limits>

#include "src/math/heads.hpp"
#include "src/math/reference/attention.hpp"
#include "tests/catch.hpp"
#include "tests/math/checks.hpp"

using namespace chorale;

namespace {

Dropout dropping(double probability, std::int64_t tokens) {
  return {.probability = probability,
          .random = {.seed = 3, .step = 5, .site = 8},
          .tokens = {.first_sample = 2, .sequence = tokens, .tokens = tokens}};
}

struct AttentionCase {
  AttentionCase(Desk& desk, DType dtype, std::int64_t samples, std::int64_t tokens, AttentionShape shape, double probability)
      : shape(shape), dropout(dropping(probability, tokens)) {
    const std::int64_t rows = samples * tokens;
    const DType logs = dtype == DType::f64 ? DType::f64 : DType::f32;
    qkv = desk.random({rows, shape.groups, shape.queries + 2, shape.width}, dtype, 2);
    dout = desk.random({rows, shape.groups, shape.queries, shape.width}, dtype);
    out = desk.filled(dout.shape(), dtype, NAN);
    lse = desk.filled({rows, shape.heads()}, logs, NAN);
    dqkv = desk.filled(qkv.shape(), dtype, NAN);
  }
  AttentionInput input() const { return whole_sequences(qkv, shape, dropout); }
  void run(int threads = 1) const {
    attention_forward(input(), out, lse, {threads});
    attention_backward(input(), dout, out, lse, dqkv, input().keys.in(dqkv), {threads});
  }
  AttentionShape shape;
  Dropout dropout;
  Tensor qkv, dout, out, lse, dqkv;
};

// The reference's results in double precision for the inputs of a test case. The backward pass uses `out` of the reference's
// forward pass.
struct Truth {
  Truth(Desk& desk, const AttentionCase& c) : Truth(desk, c, doubles(c.qkv)) {}
  Truth(Desk& desk, const AttentionCase& c, const std::vector<double>& values) {
    const auto in_double = [&](const Tensor& like, const std::vector<double>& of) {
      const Tensor t = desk.empty(like.shape(), DType::f64);
      std::copy(of.begin(), of.end(), t.values<double>().begin());
      return t;
    };
    const AttentionInput in = whole_sequences(in_double(c.qkv, values), c.shape, c.dropout);
    const std::vector<double> dout = doubles(c.dout);
    const Tensor gradients = desk.filled(c.qkv.shape(), DType::f64, NAN);
    out.resize(dout.size());
    lse.resize(static_cast<std::size_t>(c.qkv.dim(0) * c.shape.heads()));
    reference::attention_forward(in, out.data(), lse.data());
    reference::attention_backward(in, dout.data(), out.data(), lse.data(), gradients.values<double>().data(),
                                  in.keys.in(gradients));
    dqkv = doubles(gradients);
  }
  std::vector<double> out, lse, dqkv;
};

// Returns a copy of `rows` rows of one group of a tensor [rows, groups, …], beginning with row `first`.
Tensor part(Desk& desk, const Tensor& whole, std::int64_t first, std::int64_t rows, std::int64_t groups,
            std::int64_t group) {
  const std::int64_t bytes = whole.bytes() / whole.dim(0) / groups;
  const Tensor t = desk.empty({rows, bytes / size_of(whole.dtype())}, whole.dtype());
  for (std::int64_t row = 0; row < rows; ++row)
    std::memcpy(static_cast<std::byte*>(t.slice().data) + row * bytes,
                static_cast<const std::byte*>(whole.slice().data) + ((first + row) * groups + group) * bytes,
                static_cast<std::size_t>(bytes));
  return t;
}

// Calls `f` with shapes whose sizes end within, at and just beyond a tile, a register and a group.
template <class F>
void for_each_shape(F&& f) {
  for (const std::int64_t tokens : {1, 2, 17, 63, 64, 65, 130})
    for (const std::int64_t width : {4, 8, 16, 31, 64, 96, 128}) {
      const std::int64_t groups = 1 + (tokens + width) % 4, queries = 1 + (tokens / 2 + width / 4) % 4;
      f(tokens, AttentionShape{.groups = groups, .queries = queries, .width = width, .first_head = 2, .all_heads = 20});
    }
}

}  // namespace

TEST_CASE("attention: the reference's gradient matches its forward pass") {
  Desk desk;
  for (const double probability : {0.0, 0.3})
    for (const std::int64_t queries : {1, 3}) {
      const AttentionCase c(desk, DType::f64, 2, 5, {.groups = 2, .queries = queries, .width = 3, .all_heads = 9},
                            probability);
      const Truth truth(desk, c);
      const std::vector<double> dout = doubles(c.dout);
      const auto loss = [&](const std::vector<double>& qkv) {
        const std::vector<double> out = Truth(desk, c, qkv).out;
        double sum = 0;
        for (std::size_t i = 0; i < out.size(); ++i) sum += out[i] * dout[i];
        return sum;
      };
      REQUIRE(distance(truth.dqkv, numerical_gradient(loss, doubles(c.qkv))) < 1e-6);
    }
}

TEST_CASE("attention in tiles gives the reference's values, for every type, shape and dropout") {
  for (const auto& [dtype, near] : {std::pair(DType::f32, 1e-5), std::pair(DType::bf16, 1e-2), std::pair(DType::f16, 2e-3),
                                    std::pair(DType::f64, 1e-14)})
    for (const double probability : {0.0, 0.3})
      for_each_shape([&](std::int64_t tokens, const AttentionShape& shape) {
        Desk desk;
        const AttentionCase c(desk, dtype, 2, tokens, shape, probability);
        const Truth truth(desk, c);
        c.run();
        INFO(name_of(dtype) << ", " << tokens << " tokens, " << shape.groups << " × " << shape.queries << " heads of "
                            << shape.width << ", dropout " << probability);
        REQUIRE(distance(doubles(c.out), truth.out) < near);
        REQUIRE(distance(doubles(c.lse), truth.lse) < std::min(near, 1e-5));
        REQUIRE(distance(doubles(c.dqkv), truth.dqkv) < near);
      });
}

TEST_CASE("attention: a group has the same bits alone, among others, and on two threads") {
  const std::int64_t tokens = 70;
  for (const DType dtype : {DType::f32, DType::bf16})
    for (const double probability : {0.0, 0.3}) {
      Desk desk;
      const AttentionShape shape{.groups = 3, .queries = 2, .width = 20, .first_head = 4, .all_heads = 12};
      const AttentionCase whole(desk, dtype, 2, tokens, shape, probability), cut(desk, dtype, 2, tokens, shape, probability);
      std::memcpy(cut.qkv.slice().data, whole.qkv.slice().data, static_cast<std::size_t>(whole.qkv.bytes()));
      std::memcpy(cut.dout.slice().data, whole.dout.slice().data, static_cast<std::size_t>(whole.dout.bytes()));
      whole.run();
      cut.run(2);
      REQUIRE(same_bits(whole.out, cut.out));
      REQUIRE(same_bits(whole.lse, cut.lse));
      REQUIRE(same_bits(whole.dqkv, cut.dqkv));
      AttentionCase alone(desk, dtype, 1, tokens, {.groups = 1, .queries = 2, .width = 20, .first_head = 6, .all_heads = 12},
                          probability);
      alone.dropout.tokens.first_sample += 1;
      const auto of = [&](const Tensor& t) { return part(desk, t, tokens, tokens, 3, 1); };
      alone.qkv = of(whole.qkv);
      alone.dout = of(whole.dout);
      alone.run();
      REQUIRE(same_bits(alone.out, of(whole.out)));
      REQUIRE(same_bits(alone.lse, of(whole.lse)));
      REQUIRE(same_bits(alone.dqkv, of(whole.dqkv)));
    }
}

TEST_CASE("attention with caches has the bits of attention without caches, however the tokens are split") {
  const std::int64_t samples = 2, tokens = 134, capacity = 140;
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16}) {
    Desk desk;
    const AttentionShape shape{.groups = 2, .queries = 3, .width = 24, .all_heads = 6};
    const AttentionCase whole(desk, dtype, samples, tokens, shape, 0);
    whole.run();
    const Tensor cache = desk.filled({samples, capacity, 2, 2, 24}, dtype, NAN);
    std::int64_t past = 0;
    for (const std::int64_t now : {3, 1, 59, 1, 1, 64, 5}) {
      const auto those = [&](const Tensor& t) {  // the new tokens of each sample
        const std::int64_t bytes = t.bytes() / t.dim(0);
        const Tensor some = desk.empty({samples * now, bytes / size_of(dtype)}, dtype);
        for (std::int64_t s = 0; s < samples; ++s)
          std::memcpy(static_cast<std::byte*>(some.slice().data) + s * now * bytes,
                      static_cast<const std::byte*>(t.slice().data) + (s * tokens + past) * bytes,
                      static_cast<std::size_t>(now * bytes));
        return some;
      };
      const Tensor out = desk.empty({samples * now, 2, 3, 24}, dtype), qkv = those(whole.qkv);
      for (std::int64_t s = 0; s < samples; ++s)
        copy_heads(qkv.narrow(s * now, now), {2, 5, 3, 2, 24},
                   cache.view({samples * capacity, 96}).narrow(s * capacity + past, now).view({-1, 24}), false, {});
      attention_forward({.qkv = qkv,
                         .keys = keys_alone(cache, shape, samples, past + now),
                         .shape = shape,
                         .dropout = {.tokens = {.sequence = capacity, .first_token = past, .tokens = now}}},
                        out, {}, {.threads = 2});
      INFO(name_of(dtype) << ": " << now << " tokens after " << past);
      REQUIRE(same_bits(out, those(whole.out)));
      past += now;
    }
    REQUIRE(past == tokens);
  }
}

TEST_CASE("attention computes nothing for phantom tensors and refuses tensors that do not fit") {
  Desk desk;
  const AttentionShape shape{.groups = 1, .queries = 1, .width = 4};
  const AttentionCase c(desk, DType::f32, 1, 6, shape, 0);
  Desk nowhere;
  PhantomMemory phantom;
  Allocator allocator(phantom, nowhere.ledger);
  const auto shadow = [&](const Tensor& t) { return Tensor(allocator, t.shape(), t.dtype(), Category::activations); };
  const AttentionInput there = whole_sequences(shadow(c.qkv), shape, c.dropout);
  attention_forward(there, shadow(c.out), shadow(c.lse), {});
  attention_backward(there, shadow(c.dout), shadow(c.out), shadow(c.lse), shadow(c.dqkv), there.keys.in(shadow(c.dqkv)), {});
  AttentionInput in = c.input();
  in.keys = keys_alone(desk.empty({1, 5, 1, 2, 4}, DType::f32), shape, 1, 6);
  CHECK_THROWS_WITH(attention_forward(in, c.out, c.lse, {}), says("6 keys of 1 samples"));
  CHECK_THROWS_WITH(attention_forward(whole_sequences(c.qkv, shape, dropping(0, 4)), c.out, c.lse, {}),
                    says("rows of every sample"));
  CHECK_THROWS_WITH(attention_forward(c.input(), c.out, c.qkv, {}), says("expects lse"));
  CHECK_THROWS_WITH(attention_forward(c.input(), desk.empty(c.out.shape(), DType::f64), c.lse, {}), says("or f32"));
}

TEST_CASE("how fast attention is", "[!benchmark]") {
  struct Size {
    const char* name;
    std::int64_t samples, tokens, heads, width;
  };
  for (const Size& size : {Size{"nano", 8, 256, 6, 64}, Size{"gpt2", 1, 1024, 12, 64}})
    for (const double probability : {0.0, 0.1}) {
      Desk desk;
      const AttentionCase c(desk, DType::bf16, size.samples, size.tokens,
                            {.groups = size.heads, .queries = 1, .width = size.width, .all_heads = size.heads}, probability);
      const auto best = [](auto&& f) {
        double seconds = std::numeric_limits<double>::infinity();
        for (int i = 0; i < 30; ++i) {
          const auto start = std::chrono::steady_clock::now();
          f();
          seconds = std::min(seconds, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
        }
        return seconds;
      };
      const AttentionInput in = c.input();
      const double forward = best([&] { attention_forward(in, c.out, c.lse, {}); });
      const double backward = best([&] { attention_backward(in, c.dout, c.out, c.lse, c.dqkv, in.keys.in(c.dqkv), {}); });
      const double flops = 2.0 * static_cast<double>(size.samples * size.tokens * size.tokens * size.heads * size.width);
      fmt::print("{} dropout {}: forward {:.2f} ms {:.0f} GFLOP/s, backward {:.2f} ms {:.0f} GFLOP/s, both {:.0f}\n",
                 size.name, probability, forward * 1e3, flops / forward / 1e9, backward * 1e3, 2.5 * flops / backward / 1e9,
                 3.5 * flops / (forward + backward) / 1e9);
    }
}
