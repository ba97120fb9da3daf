#include "parallel/rows.hpp"

#include <algorithm>
#include <numeric>

#include "layers/attention_scheme.hpp"
#include "layers/attention_work.hpp"
#include "src/memory/on_host.hpp"

namespace chorale {
namespace {

using Numbers = std::vector<std::int32_t>;

const std::int32_t* table(const Tensor& t) { return static_cast<const std::int32_t*>(t.slice().data); }

void fill(const Tensor& t, const std::function<std::int32_t(std::size_t row)>& value) {
  if (t.phantom()) return;
  with_values<std::int32_t>(t, Use::write, [&](std::span<std::int32_t> values) {
    for (std::size_t row = 0; row < values.size(); ++row) values[row] = value(row);
  });
}

bool divides_heads(const Context& context) { return context.attention && context.attention->divides_heads(); }

}  // namespace

void make_tables(const TokenCut& cut, std::int64_t rank, std::int64_t samples, bool packed, Context& context) {
  const auto of = [&](std::int64_t count) { return context.typed({count}, DType::i32, Category::data); };
  const std::int64_t rows = samples * cut.tokens(rank);
  if (!cut.in_order()) {
    context.places = of(rows);
    context.tokens.places = table(context.places);
    const std::vector<std::int64_t> all = cut.places(rank);
    fill(context.places, [&](std::size_t row) { return static_cast<std::int32_t>(all[row % all.size()]); });
  }
  if (!packed) return;
  context.positions = of(rows);
  context.tokens.positions = table(context.positions);
  if (divides_heads(context)) context.whole_positions = of(samples * cut.sequence());
}

void read_rows(const ReadSamples& read, std::int64_t cursor, std::int64_t there, const TokenCut& cut, std::int64_t rank,
               MicroBatch& batch) {
  const Context& context = batch.context;
  const auto sequence = static_cast<std::size_t>(cut.sequence());
  const std::vector<std::int64_t> places = cut.places(rank);
  const std::size_t samples = static_cast<std::size_t>(context.targets.dim(0)) / places.size();
  const std::size_t read_tokens = static_cast<std::size_t>(there) * sequence;
  Numbers inputs(samples * sequence), targets(samples * sequence, -1), positions(context.positions ? inputs.size() : 0);
  for (std::size_t i = 0; i < positions.size(); ++i) positions[i] = static_cast<std::int32_t>(i % sequence);
  const auto first = [](Numbers& all, std::size_t count) { return std::span(all).first(std::min(count, all.size())); };
  if (there > 0)
    read(cursor, there, {first(inputs, read_tokens), first(targets, read_tokens), first(positions, read_tokens)});

  const auto own = [&](std::size_t row) {
    return row / places.size() * sequence + static_cast<std::size_t>(places[row % places.size()]);
  };
  fill(batch.inputs, [&](std::size_t row) { return inputs[own(row)]; });
  fill(context.targets, [&](std::size_t row) {
    const std::int32_t target = targets[own(row)];
    batch.targets += target >= 0;
    return target;
  });
  if (context.attention_work) {
    const bool whole = divides_heads(context);
    double pairs = 0;
    const std::size_t count = whole ? inputs.size() : samples * places.size();
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t token = whole ? i : own(i);
      pairs += positions.empty() ? static_cast<double>(token % sequence) + 0.5 : positions[token] + 0.5;
    }
    context.attention_work->pairs += whole ? pairs / static_cast<double>(cut.ranks()) : pairs;
  }
  if (!context.positions) return;
  fill(context.positions, [&](std::size_t row) { return positions[own(row)]; });
  if (context.whole_positions) fill(context.whole_positions, [&](std::size_t i) { return positions[i]; });
}

}  // namespace chorale
