// Fills the buffers of a batch with samples from a token source (chorale/data.hpp).
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>

#include <chorale/data.hpp>
#include "src/base/error.hpp"
#include "src/data/documents.hpp"

namespace chorale {

// Reads `samples` into the rows of a batch. `documents`: the document boundaries; by default, each sample is a single
// document.
void fill_batch(const TokenSource& source, std::span<const std::int64_t> samples, std::int64_t sequence,
                const SampleRows& rows, const Documents& documents = {});

// Masks the targets of the first two thirds of each sample, so that some ranks have no targets when ranks split sequences.
inline void mask_early_targets(std::span<std::int32_t> targets, std::int64_t sequence) {
  for (std::size_t first = 0; first < targets.size(); first += static_cast<std::size_t>(sequence))
    std::ranges::fill(targets.subspan(first, static_cast<std::size_t>(sequence * 2 / 3)), -1);
}

}  // namespace chorale
