// Tests attention calls that get only some of a sequence's queries or keys, and sequences packed from several documents.
#include <algorithm>
#include <numeric>

#include "src/math/attention.hpp"
#include "src/math/heads.hpp"
#include "src/math/kernel.hpp"
#include "src/math/numerics.hpp"
#include "tests/catch.hpp"
#include "tests/math/checks.hpp"

using namespace chorale;

namespace {

constexpr std::int64_t samples = 2, sequence = 150;
constexpr AttentionShape shape{.groups = 2, .queries = 2, .width = 20, .first_head = 1, .all_heads = 6};

// Returns the position at which the document of this token begins. The second sample has only one document.
std::int64_t start_of(std::int64_t sample, std::int64_t place) {
  const std::vector<std::int64_t> starts =
      sample == 0 ? std::vector<std::int64_t>{0, 1, 30, 31, 97} : std::vector<std::int64_t>{0};
  return *std::prev(std::ranges::upper_bound(starts, place));
}

// The rows at the given positions of each sample.
struct Rows {
  Rows(Desk& desk, const std::vector<std::int64_t>& of_sample, bool packed)
      : count(std::ssize(of_sample)),
        places(desk.empty({samples * count}, DType::i32)),
        positions(desk.empty({samples * count}, DType::i32)) {
    for (std::int64_t row = 0; row < samples * count; ++row) {
      const std::int64_t place = of_sample[static_cast<std::size_t>(row % count)];
      places.values<std::int32_t>()[static_cast<std::size_t>(row)] = static_cast<std::int32_t>(place);
      positions.values<std::int32_t>()[static_cast<std::size_t>(row)] =
          static_cast<std::int32_t>(place - (packed ? start_of(row / count, place) : 0));
    }
  }
  Tokens tokens() const {
    return {.first_sample = 3,
            .sequence = sequence,
            .tokens = count,
            .places = places.values<std::int32_t>().data(),
            .positions = positions.values<std::int32_t>().data()};
  }
  // Copies these rows out of a tensor with all rows.
  Tensor of(Desk& desk, const Tensor& all) const {
    const std::int64_t bytes = all.bytes() / all.dim(0);
    const Tensor some = desk.empty({samples * count, bytes / size_of(all.dtype())}, all.dtype());
    each([&](std::int64_t row, std::int64_t whole) {
      std::memcpy(static_cast<std::byte*>(some.slice().data) + row * bytes,
                  static_cast<const std::byte*>(all.slice().data) + whole * bytes, static_cast<std::size_t>(bytes));
    });
    return some;
  }
  template <class F>
  void each(F&& f) const {
    for (std::int64_t row = 0; row < samples * count; ++row)
      f(row, row / count * sequence + places.values<std::int32_t>()[static_cast<std::size_t>(row)]);
  }
  std::int64_t count;
  Tensor places, positions;
};

std::vector<std::int64_t> all_places() {
  std::vector<std::int64_t> places(sequence);
  std::iota(places.begin(), places.end(), 0);
  return places;
}

// The token positions of rank r of three ranks: stripes of ten tokens, or the blocks r and 5 − r of 25 tokens each.
std::vector<std::int64_t> striped(std::int64_t r) {
  std::vector<std::int64_t> places = all_places();
  std::erase_if(places, [&](std::int64_t place) { return place / 10 % 3 != r; });
  return places;
}
std::vector<std::int64_t> zigzag(std::int64_t r) {
  std::vector<std::int64_t> places = all_places();
  std::erase_if(places, [&](std::int64_t place) { return place / 25 != r && place / 25 != 5 - r; });
  return places;
}

// All rows of a layer, and the results of one attention call over all rows.
struct Whole {
  Whole(Desk& desk, DType dtype, bool packed, double probability)
      : rows(desk, all_places(), packed), probability(probability), desk(desk) {
    qkv = desk.random({samples * sequence, shape.columns()}, dtype, 2);
    dout = desk.random({samples * sequence, shape.heads() * shape.width}, dtype);
    out = desk.filled(dout.shape(), dtype, NAN);
    lse = desk.filled({samples * sequence, shape.heads()}, statistic_of(dtype), NAN);
    dqkv = desk.filled(qkv.shape(), dtype, NAN);
    keys = desk.empty({samples * sequence, shape.key_columns()}, dtype);
    copy_heads(qkv, {shape.groups, shape.queries + 2, shape.queries, 2, shape.width}, keys.view({-1, shape.width}), false,
               {});
    const AttentionInput in = input(qkv, rows);
    attention_forward(in, out, lse, {.threads = 2});
    attention_backward(in, dout, out, lse, dqkv, in.keys.in(dqkv), {.threads = 2});
  }
  AttentionInput input(const Tensor& queries, const Rows& some) const {
    AttentionInput in = whole_sequences(
        queries, shape, {.probability = probability, .random = {.seed = 3, .step = 5, .site = 8}, .tokens = some.tokens()});
    if (some.count < sequence) in.keys = keys_alone(keys, shape, samples, sequence);
    return in;
  }
  // The columns of dqkv that belong to queries, or the columns that belong to keys and values.
  Tensor columns(const Tensor& gradients, bool of_keys) const {
    const std::int64_t first = of_keys ? shape.queries : 0, count = of_keys ? 2 : shape.queries;
    const Tensor some = desk.empty({gradients.dim(0) * shape.groups * count, shape.width}, gradients.dtype());
    copy_heads(gradients, {shape.groups, shape.queries + 2, first, count, shape.width}, some, false, {});
    return some;
  }
  Rows rows;
  double probability;
  Desk& desk;
  Tensor qkv, keys, dout, out, lse, dqkv;
};

}  // namespace

TEST_CASE("attention of packed documents is that of each document alone") {
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16}) {
    Desk desk;
    const Whole packed(desk, dtype, true, 0);
    const double near = dtype == DType::bf16 ? 1e-2 : dtype == DType::f32 ? 1e-5 : 1e-13;
    for (std::int64_t sample = 0; sample < samples; ++sample)
      for (std::int64_t first = 0, end = 0; first < sequence; first = end) {
        for (end = first + 1; end < sequence && start_of(sample, end) == first;) ++end;
        const auto part = [&](const Tensor& t) { return t.narrow(sample * sequence + first, end - first); };
        const Tensor out = desk.empty(part(packed.out).shape(), dtype), dqkv = desk.empty(part(packed.qkv).shape(), dtype);
        const Tensor lse = desk.empty(part(packed.lse).shape(), packed.lse.dtype());
        const AttentionInput in =
            whole_sequences(part(packed.qkv), shape, {.tokens = {.sequence = end - first, .tokens = end - first}});
        attention_forward(in, out, lse, {});
        attention_backward(in, part(packed.dout), out, lse, dqkv, in.keys.in(dqkv), {});
        INFO(name_of(dtype) << ", sample " << sample << ", tokens " << first << " to " << end);
        REQUIRE(distance(doubles(part(packed.out)), doubles(out)) < near);
        REQUIRE(distance(doubles(part(packed.lse)), doubles(lse)) < std::min(near, 1e-5));
        REQUIRE(distance(doubles(part(packed.dqkv)), doubles(dqkv)) < near);
      }
  }
}

TEST_CASE("attention of some queries to all keys has the bits of all queries, and its key gradients add up") {
  for (const bool packed : {false, true})
    for (const double probability : {0.0, 0.3})
      for (const auto& cut : {striped, zigzag}) {
        Desk desk;
        const Whole whole(desk, DType::f32, packed, probability);
        std::vector<double> sums(static_cast<std::size_t>(whole.keys.count()));
        for (std::int64_t r = 0; r < 3; ++r) {
          const Rows mine(desk, cut(r), packed);
          const Tensor qkv = mine.of(desk, whole.qkv), dout = mine.of(desk, whole.dout);
          const Tensor out = desk.empty(dout.shape(), DType::f32), dqkv = desk.filled(qkv.shape(), DType::f32, 0);
          const Tensor lse = desk.empty({qkv.dim(0), shape.heads()}, DType::f32),
                       dkeys = desk.empty(whole.keys.shape(), DType::f32);
          const AttentionInput in = whole.input(qkv, mine);
          attention_forward(in, out, lse, {});
          attention_backward(in, dout, out, lse, dqkv, in.keys.in(dkeys), {.threads = 2});
          REQUIRE(same_bits(out, mine.of(desk, whole.out)));
          REQUIRE(same_bits(lse, mine.of(desk, whole.lse)));
          REQUIRE(same_bits(whole.columns(dqkv, false), whole.columns(mine.of(desk, whole.dqkv), false)));
          const std::vector<double> part = doubles(dkeys);
          for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += part[i];
        }
        REQUIRE(distance(sums, doubles(whole.columns(whole.dqkv, true))) < 1e-5);
      }
}

TEST_CASE("attention to keys in parts, in any order, is attention to all keys") {
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16})
    for (const double probability : {0.0, 0.3}) {
      Desk desk;
      const Whole whole(desk, dtype, true, probability);
      const DType partial = dtype == DType::bf16 ? DType::f32 : dtype;
      const double near = dtype == DType::bf16 ? 1e-2 : dtype == DType::f32 ? 1e-5 : 1e-13;
      const Rows mine(desk, zigzag(1), true);
      const Tensor qkv = mine.of(desk, whole.qkv), dout = mine.of(desk, whole.dout);
      const Tensor out = desk.filled(dout.shape(), partial, NAN), dqkv = desk.filled(qkv.shape(), partial, 0);
      const Tensor lse = desk.filled({qkv.dim(0), shape.heads()}, whole.lse.dtype(), NAN);
      const Tensor dkeys = desk.filled(whole.keys.shape(), partial, 0);
      const std::vector<std::pair<std::int64_t, std::int64_t>> parts{{90, 150}, {0, 17}, {17, 81}, {81, 90}};
      const auto of_part = [&](const std::pair<std::int64_t, std::int64_t>& part) {
        AttentionInput in = whole.input(qkv, mine);
        in.keys.first_token = in.keys.first_row = part.first;
        in.keys.count = part.second - part.first;
        in.continues = part != parts.front();
        return in;
      };
      for (const auto& part : parts) attention_forward(of_part(part), out, lse, {});
      for (const auto& part : parts) {
        AttentionInput in = of_part(part);
        in.continues = true;  // all gradients start at zero
        attention_backward(in, dout, out, lse, dqkv, in.keys.in(dkeys), {});
      }
      INFO(name_of(dtype) << ", dropout " << probability);
      REQUIRE(distance(doubles(out), doubles(mine.of(desk, whole.out))) < near);
      REQUIRE(distance(doubles(lse), doubles(mine.of(desk, whole.lse))) < std::min(near, 1e-5));
      REQUIRE(distance(doubles(whole.columns(dqkv, false)), doubles(whole.columns(mine.of(desk, whole.dqkv), false))) <
              near);
      // The same gradients, computed by one call with all keys.
      const AttentionInput all = whole.input(qkv, mine);
      const Tensor dqkv_at_once = desk.empty(qkv.shape(), partial), dkeys_at_once = desk.empty(whole.keys.shape(), partial);
      attention_backward(all, dout, out, lse, dqkv_at_once, all.keys.in(dkeys_at_once), {});
      REQUIRE(distance(doubles(dkeys), doubles(dkeys_at_once)) < near);
    }
}

TEST_CASE("a query that sees none of a call's keys has no output yet") {
  Desk desk;
  const Whole whole(desk, DType::f32, false, 0);
  const Rows mine(desk, zigzag(0), false);
  const Tensor qkv = mine.of(desk, whole.qkv);
  const Tensor out = desk.filled({qkv.dim(0), 80}, DType::f32, NAN), lse = desk.filled({qkv.dim(0), 4}, DType::f32, NAN);
  AttentionInput in = whole.input(qkv, mine);
  in.keys.first_token = in.keys.first_row = 60;
  in.keys.count = 20;
  attention_forward(in, out, lse, {});
  mine.each([&](std::int64_t row, std::int64_t all) {
    const bool sees = all % sequence >= 60;
    CHECK((lse.values<float>()[static_cast<std::size_t>(4 * row)] > -100) == sees);
    CHECK((out.values<float>()[static_cast<std::size_t>(80 * row)] != 0) == sees);
  });
}

TEST_CASE("exact key gradients are the same integers for any cut of the queries between leaves, and any number of threads") {
  const std::int64_t leaf = GENERATE(1, 5, 25);
  for (const bool packed : {false, true})
    for (const auto& cut : {striped, zigzag}) {
      if (leaf == 25 && cut == striped) continue;  // a stripe has 10 tokens
      Desk desk;
      const Whole whole(desk, DType::f32, packed, 0.2);
      const auto exact = exact_numerics();
      SumSite site{.name = "keys", .sum = SumOf::input_gradients, .addends = 2 * sequence};
      const auto run = [&](const Rows& rows, const Tensor& sums, int threads) {
        const Tensor qkv = rows.of(desk, whole.qkv), dout = rows.of(desk, whole.dout);
        const Tensor dqkv = desk.filled(qkv.shape(), DType::f32, 0);
        AttentionInput in = whole.input(qkv, rows);
        in.keys = keys_alone(whole.keys, shape, samples, sequence);
        exact->attention_backward(in, dout, rows.of(desk, whole.out), rows.of(desk, whole.lse), dqkv, in.keys.in(sums), leaf,
                                  site, {.threads = threads});
        REQUIRE(same_bits(whole.columns(dqkv, false), whole.columns(rows.of(desk, whole.dqkv), false)));
      };
      const Tensor wanted = desk.filled(whole.keys.shape(), DType::i64, 0),
                   sums = desk.filled(wanted.shape(), DType::i64, 0);
      run(whole.rows, wanted, 1);
      for (std::int64_t r = 2; r >= 0; --r) run(Rows(desk, cut(r), packed), sums, static_cast<int>(r) + 1);
      REQUIRE(same_bits(sums, wanted));
      std::vector<double> values = doubles(sums);
      for (double& value : values) value *= exact->unit(site);
      REQUIRE(distance(values, doubles(whole.columns(whole.dqkv, true))) < 1e-5);
    }
}
