#include "parallel/step/rows.hpp"

#include <algorithm>

#include "layers/attention_scheme.hpp"
#include "layers/attention_work.hpp"
#include "parallel/context/balanced_cut.hpp"
#include "parallel/context/sequence_order.hpp"
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

// places_of(sample) lists tokens of each sample. Returns the row numbers of these tokens in a table of complete samples.
template <class F>
std::vector<std::size_t> rows_among_all(std::size_t samples, std::int64_t sequence, F&& places_of) {
  std::vector<std::size_t> rows;
  for (std::int64_t sample = 0; sample < static_cast<std::int64_t>(samples); ++sample)
    for (const std::int64_t place : places_of(sample)) rows.push_back(static_cast<std::size_t>(sample * sequence + place));
  return rows;
}

}  // namespace

void make_tables(const TokenCut& cut, std::int64_t rank, std::int64_t samples, bool packed, Context& context) {
  const auto of = [&](std::int64_t tokens) { return context.typed({samples * tokens}, DType::i32, Category::data); };
  const auto of_places = [&](const std::vector<std::int64_t>& all) {
    const Tensor made = of(std::ssize(all));
    fill(made, [&](std::size_t row) { return static_cast<std::int32_t>(all[row % all.size()]); });
    return made;
  };
  if (!cut.in_order()) {
    context.places = of_places(cut.places(rank));
    context.tokens.places = table(context.places);
  }
  if (packed) {
    context.positions = of(cut.tokens(rank));
    context.tokens.positions = table(context.positions);
  }
  const QueryTokens queries = context.attention ? context.attention->query_tokens() : QueryTokens{};
  if (queries.places.empty()) return;
  if (queries.places.back() - queries.places.front() >= std::ssize(queries.places))
    context.query_places = of_places(queries.places);
  if (packed) context.query_positions = of(std::ssize(queries.places));
}

void read_rows(const ReadSamples& read, std::int64_t cursor, std::int64_t there, const TokenCut& cut, std::int64_t rank,
               MicroBatch& batch) {
  Context& context = batch.context;
  const auto sequence = static_cast<std::size_t>(cut.sequence());
  const std::size_t samples = static_cast<std::size_t>(context.targets.dim(0) / cut.tokens(rank));
  const std::size_t read_tokens = static_cast<std::size_t>(there) * sequence;
  Numbers inputs(samples * sequence), targets(samples * sequence, -1), positions(context.positions ? inputs.size() : 0);
  for (std::size_t i = 0; i < positions.size(); ++i) positions[i] = static_cast<std::int32_t>(i % sequence);
  const auto first = [](Numbers& all, std::size_t count) { return std::span(all).first(std::min(count, all.size())); };
  if (there > 0)
    read(cursor, there, {first(inputs, read_tokens), first(targets, read_tokens), first(positions, read_tokens)});
  if (context.positions && cut.row().by_work && cut.ranks() > 1) {
    batch.cuts = balanced_cuts(cut, positions);
    context.cuts = &batch.cuts;
  }

  const std::vector<std::size_t> own = rows_among_all(
      samples, cut.sequence(), [&](std::int64_t sample) { return cut_of(sample, cut, context).places(rank); });
  if (context.cuts) fill(context.places, [&](std::size_t row) { return static_cast<std::int32_t>(own[row] % sequence); });
  fill(batch.inputs, [&](std::size_t row) { return inputs[own[row]]; });
  fill(context.targets, [&](std::size_t row) {
    const std::int32_t target = targets[own[row]];
    batch.targets += target >= 0;
    return target;
  });
  const QueryTokens queries = context.attention ? context.attention->query_tokens() : QueryTokens{};
  const std::vector<std::size_t> seeing =
      queries.places.empty() ? own : rows_among_all(samples, cut.sequence(), [&](auto) { return queries.places; });
  if (context.attention_work) {
    double pairs = 0;
    for (const std::size_t row : seeing)
      pairs += positions.empty() ? static_cast<double>(row % sequence) + 0.5 : positions[row] + 0.5;
    context.attention_work->pairs += pairs / static_cast<double>(queries.ranks);
  }
  if (!context.positions) return;
  fill(context.positions, [&](std::size_t row) { return positions[own[row]]; });
  if (context.query_positions) fill(context.query_positions, [&](std::size_t row) { return positions[seeing[row]]; });
}

}  // namespace chorale
