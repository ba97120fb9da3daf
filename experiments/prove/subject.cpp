#include "experiments/prove/subject.hpp"

#include <algorithm>

namespace chorale::prove {

const History* reference_of(const Case& row, const References& references) {
  const auto found = std::ranges::find(references, Subject(row), &References::value_type::first);
  return found == references.end() ? nullptr : &found->second;
}

ReadSamples reader_of(const Case& row) {
  const auto data = std::make_shared<train::Dataset>("synthetic", row.options.shape, row.options.seed, row.documents);
  return [data, read = data->training(), few = row.few_labels, sequence = row.options.shape.sequence](
             std::int64_t first, std::int64_t samples, const SampleRows& rows) {
    read(first, samples, rows);
    if (few) mask_early_targets(rows.targets, sequence);
  };
}

}  // namespace chorale::prove
