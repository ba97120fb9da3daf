#include "src/math/attention.hpp"

#include <cstring>

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

struct Case {
  Case(Desk& desk, DType dtype, std::int64_t samples, std::int64_t tokens, AttentionShape shape, double probability)
      : shape(shape), dropout(dropping(probability, tokens)) {
    const std::int64_t rows = samples * tokens;
    const DType logs = dtype == DType::f64 ? DType::f64 : DType::f32;
    qkv = desk.random({rows, shape.groups, shape.queries + 2, shape.width}, dtype, 2);
    dout = desk.random({rows, shape.groups, shape.queries, shape.width}, dtype);
    out = desk.filled(dout.shape(), dtype, NAN);
    lse = desk.filled({rows, shape.heads()}, logs, NAN);
    dqkv = desk.filled(qkv.shape(), dtype, NAN);
  }
  void run(int threads = 1) const {
    attention_forward(qkv, shape, dropout, out, lse, {threads});
    attention_backward(dout, qkv, out, lse, shape, dropout, dqkv, {threads});
  }
  AttentionShape shape;
  Dropout dropout;
  Tensor qkv, dout, out, lse, dqkv;
};

// The reference in double, on the numbers of the case; backward from its own out.
struct Truth {
  explicit Truth(const Case& c) {
    const std::vector<double> qkv = doubles(c.qkv), dout = doubles(c.dout);
    const std::int64_t rows = c.qkv.dim(0);
    out.resize(dout.size());
    lse.resize(static_cast<std::size_t>(rows * c.shape.heads()));
    dqkv.resize(qkv.size());
    reference::attention_forward(qkv.data(), rows, c.shape, c.dropout, out.data(), lse.data());
    reference::attention_backward(dout.data(), qkv.data(), out.data(), lse.data(), rows, c.shape, c.dropout, dqkv.data());
  }
  std::vector<double> out, lse, dqkv;
};

bool same_bits(const Tensor& a, const Tensor& b) {
  return std::memcmp(a.slice().data, b.slice().data, static_cast<std::size_t>(a.bytes())) == 0;
}

// Every place where a tile, a register or a group may end.
template <class F>
void for_each_shape(F&& f) {
  for (const std::int64_t tokens : {1, 2, 17, 63, 64, 65, 130})
    for (const std::int64_t width : {4, 8, 16, 31, 64, 96, 128}) {
      const std::int64_t groups = 1 + (tokens + width) % 4, queries = 1 + (tokens / 2 + width / 4) % 4;
      f(tokens, AttentionShape{.groups = groups, .queries = queries, .width = width, .first_head = 2, .all_heads = 20});
    }
}

}  // namespace

TEST_CASE("attention's reference gradient is that of its forward pass") {
  Desk desk;
  for (const double probability : {0.0, 0.3})
    for (const std::int64_t queries : {1, 3}) {
      const Case c(desk, DType::f64, 2, 5, {.groups = 2, .queries = queries, .width = 3, .all_heads = 9}, probability);
      const Truth truth(c);
      const std::vector<double> dout = doubles(c.dout);
      const auto loss = [&](const std::vector<double>& qkv) {
        std::vector<double> out(dout.size()), lse(truth.lse.size());
        reference::attention_forward(qkv.data(), c.qkv.dim(0), c.shape, c.dropout, out.data(), lse.data());
        double sum = 0;
        for (std::size_t i = 0; i < out.size(); ++i) sum += out[i] * dout[i];
        return sum;
      };
      REQUIRE(distance(truth.dqkv, numerical_gradient(loss, doubles(c.qkv))) < 1e-6);
    }
}

TEST_CASE("attention over tiles is the reference, for every type, shape and dropout") {
  for (const auto& [dtype, near] : {std::pair(DType::f32, 1e-5), std::pair(DType::bf16, 1e-2), std::pair(DType::f16, 2e-3),
                                    std::pair(DType::f64, 1e-14)})
    for (const double probability : {0.0, 0.3})
      for_each_shape([&](std::int64_t tokens, const AttentionShape& shape) {
        Desk desk;
        const Case c(desk, dtype, 2, tokens, shape, probability);
        const Truth truth(c);
        c.run();
        INFO(name_of(dtype) << ", " << tokens << " tokens, " << shape.groups << " × " << shape.queries << " heads of "
                            << shape.width << ", dropout " << probability);
        REQUIRE(distance(doubles(c.out), truth.out) < near);
        REQUIRE(distance(doubles(c.lse), truth.lse) < std::min(near, 1e-5));
        REQUIRE(distance(doubles(c.dqkv), truth.dqkv) < near);
      });
}
