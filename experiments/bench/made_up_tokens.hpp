// Arbitrary tokens for training steps that are only timed.
#pragma once
#include "parallel/step/training.hpp"

namespace chorale::bench {

inline ReadSamples made_up_tokens(std::int64_t vocabulary) {
  return [vocabulary](std::int64_t first, std::int64_t, const SampleRows& rows) {
    for (std::size_t i = 0; i < rows.inputs.size(); ++i) {
      const auto token = static_cast<std::int64_t>(i) * 31 + first;
      rows.inputs[i] = static_cast<std::int32_t>(token % vocabulary);
      rows.targets[i] = static_cast<std::int32_t>((token + 31) % vocabulary);
    }
  };
}

}  // namespace chorale::bench
