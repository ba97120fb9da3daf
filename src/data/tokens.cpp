#include "src/data/tokens.hpp"

#include <numeric>

namespace chorale {

void fill_batch(const TokenSource& source, std::span<const std::int64_t> samples, std::int64_t sequence,
                const SampleRows& rows, const Documents& documents) {
  const auto length = static_cast<std::size_t>(sequence);
  require(rows.inputs.size() == samples.size() * length && rows.targets.size() == rows.inputs.size(),
          "{} samples of {} tokens do not fill {} inputs and {} targets", samples.size(), sequence, rows.inputs.size(),
          rows.targets.size());
  std::vector<std::int32_t> row(length + 1);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    source.read(samples[i], row);
    const auto part = [&](std::span<std::int32_t> all) { return all.subspan(i * length, length); };
    std::copy(row.begin(), row.end() - 1, part(rows.inputs).begin());
    std::copy(row.begin() + 1, row.end(), part(rows.targets).begin());
    if (!rows.positions.empty())
      documents.mark(samples[i] * sequence, part(rows.inputs), part(rows.targets), part(rows.positions));
  }
}

ReadSamples in_order(const TokenSource& source, std::int64_t sequence) {
  return [&source, sequence](std::int64_t first, std::int64_t samples, const SampleRows& rows) {
    std::vector<std::int64_t> numbers(static_cast<std::size_t>(samples));
    std::iota(numbers.begin(), numbers.end(), first);
    fill_batch(source, numbers, sequence, rows);
  };
}

}  // namespace chorale
