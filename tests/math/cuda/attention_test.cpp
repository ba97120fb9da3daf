#include "src/math/attention.hpp"

#include "tests/math/cuda/gpu.hpp"

using namespace chorale;

namespace {

// Sequence lengths. Two lengths fit into a tile and are tested with two samples. One length exceeds a tile and is tested
// with one sample.
constexpr std::int64_t lengths[] = {1, 19, 130};

Dropout drops(double probability, std::int64_t tokens) {
  return {probability, {.seed = 5, .step = 7, .site = 9}, {.first_sample = 3, .sequence = tokens, .tokens = tokens}};
}

}  // namespace

TEST_CASE("device: attention and its gradient match the host's", "[gpu]") {
  Gpu gpu;
  if (!gpu) return;
  for (const DType dtype : floating_dtypes)
    for (const std::int64_t width : {5, 40, 64, 128})
      for (const std::int64_t tokens : lengths)
        for (const double probability : {0.0, 0.2}) {
          if (tokens > 100 && (width < 64 || dtype == DType::f64)) continue;
          INFO(name_of(dtype) << " width " << width << " tokens " << tokens << " p " << probability);
          Desk desk;
          const bool is_long = tokens > 100;
          const AttentionShape shape{
              .groups = is_long ? 1 : 2, .queries = is_long ? 2 : 3, .width = width, .first_head = 4, .all_heads = 9};
          const Dropout drop = drops(probability, tokens);
          const std::int64_t rows = tokens > 100 ? tokens : 2 * tokens;
          const Tensor qkv = desk.random({rows, shape.columns()}, dtype, 2), dqkv = desk.random(qkv.shape(), dtype);
          const Tensor out = desk.random({rows, shape.heads() * width}, dtype), dout = desk.random(out.shape(), dtype);
          const Tensor lse = desk.random({rows, shape.heads()}, statistic_of(dtype));
          const double near = 3 * nearness(dtype);  // in 16-bit types, probabilities are rounded before the product with V
          gpu.compare({qkv, out, lse}, near, [&](const auto& t, const Queue& queue) {
            attention_forward(whole_sequences(t[0], shape, drop), t[1], t[2], queue);
          });
          attention_forward(whole_sequences(qkv, shape, drop), out, lse, {});
          gpu.compare({dout, qkv, out, lse, dqkv}, near, [&](const auto& t, const Queue& queue) {
            const AttentionInput in = whole_sequences(t[1], shape, drop);
            attention_backward(in, t[0], t[2], t[3], t[4], in.keys.in(t[4]), queue);
          });
        }
}

// Packed queries from every second block of five tokens, with separate keys. Either one call has all keys, or a second call
// has the keys from number 20 on.
TEST_CASE("device: attention of some queries to some keys, of packed documents, matches the host's", "[gpu]") {
  Gpu gpu;
  if (!gpu) return;
  constexpr std::int64_t samples = 2, sequence = 70, queries = 35;
  for (const DType dtype : floating_dtypes)
    for (const bool continues : {false, true})
      for (const double probability : {0.0, 0.2}) {
        INFO(name_of(dtype) << " continues " << continues << " p " << probability);
        Desk desk;
        const AttentionShape shape{.groups = 2, .queries = 2, .width = 12, .first_head = 1, .all_heads = 7};
        const Tensor places = desk.empty({samples * queries}, DType::i32),
                     positions = desk.empty(places.shape(), DType::i32);
        for (std::int64_t row = 0; row < samples * queries; ++row) {
          const std::int64_t place = row % queries / 5 * 10 + row % 5, document = row < queries ? 31 : 23;
          places.values<std::int32_t>()[static_cast<std::size_t>(row)] = static_cast<std::int32_t>(place);
          positions.values<std::int32_t>()[static_cast<std::size_t>(row)] = static_cast<std::int32_t>(place % document);
        }
        const auto input = [&](const Tensor& qkv, const Tensor& keys, const Tensor& table, const Tensor& in_document) {
          AttentionInput in{.qkv = qkv, .keys = keys_alone(keys, shape, samples, sequence), .shape = shape};
          if (continues) {
            in.keys.first_token = in.keys.first_row = 20;
            in.keys.count -= 20;
          }
          in.continues = continues;
          in.dropout = drops(probability, queries);
          in.dropout.tokens.sequence = sequence;
          in.dropout.tokens.places = static_cast<const std::int32_t*>(table.slice().data);
          in.dropout.tokens.positions = static_cast<const std::int32_t*>(in_document.slice().data);
          return in;
        };
        const DType partial = continues && size_of(dtype) == 2 ? DType::f32 : dtype;
        const Tensor qkv = desk.random({samples * queries, shape.columns()}, dtype, 2);
        const Tensor keys = desk.random({samples * sequence, shape.key_columns()}, dtype, 2);
        const Tensor out = desk.random({samples * queries, 4 * 12}, partial), dout = desk.random(out.shape(), dtype);
        const Tensor lse = desk.random({samples * queries, 4}, statistic_of(dtype));
        const Tensor dqkv = desk.random(qkv.shape(), partial), dkeys = desk.random(keys.shape(), partial);
        gpu.compare({qkv, keys, places, positions, out, lse}, 2 * nearness(dtype), [&](const auto& t, const Queue& queue) {
          attention_forward(input(t[0], t[1], t[2], t[3]), t[4], t[5], queue);
        });
        attention_forward(input(qkv, keys, places, positions), out, lse, {});
        gpu.compare({qkv, keys, places, positions, dout, out, lse, dqkv, dkeys}, 3 * nearness(dtype),
                    [&](const auto& t, const Queue& queue) {
                      const AttentionInput in = input(t[0], t[1], t[2], t[3]);
                      attention_backward(in, t[4], t[5], t[6], t[7], in.keys.in(t[8]), queue);
                    });
        if (dtype != DType::f32) continue;
        const Tensor sums = desk.filled(keys.shape(), DType::i64, 3);
        SumSite site{.name = "keys", .sum = SumOf::input_gradients, .addends = 100};
        gpu.compare({qkv, keys, places, positions, dout, out, lse, dqkv, sums}, 0, [&](const auto& t, const Queue& queue) {
          const auto exact = exact_numerics();
          const AttentionInput in = input(t[0], t[1], t[2], t[3]);
          (queue.device ? gpu.exact() : *exact)
              .attention_backward(in, t[4], t[5], t[6], t[7], in.keys.in(t[8]), 10, site, queue);
        });
      }
}
