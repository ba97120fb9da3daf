#include "experiments/train/dataset.hpp"

#include <fmt/format.h>

#include "src/data/synthetic.hpp"
#include "src/data/token_file.hpp"

namespace chorale::train {
namespace {

constexpr double held_out_share = 0.01;
// The synthetic language is endless. A run draws its samples from a set of this size, and draws each sample at most once.
constexpr std::int64_t synthetic_samples = std::int64_t{1} << 40;

}  // namespace

Dataset::Dataset(const std::string& data, const ModelShape& shape, std::uint64_t seed, const DocumentMask& mask)
    : documents_(Documents::named(mask.documents)), sequence_(shape.sequence) {
  std::int64_t samples = synthetic_samples;
  if (data == "synthetic") {
    if (mask.documents.ends_with(".idx"))
      usage_error("synthetic data has no index of documents", fmt::format("--document-mask is {}", mask.documents),
                  "name a token, or random:MEAN, or the --data that the index describes");
    auto language = std::make_unique<SyntheticLanguage>(shape.vocabulary, seed);
    floor_ = language->floor(shape.sequence);
    source_ = std::move(language);
  } else {
    auto stored = std::make_unique<StoredTokens>(open_tokens(data));
    stored->require_below(shape.vocabulary);
    documents_.require_of(*stored);
    if (!mask.split) documents_.require_shorter(*stored, sequence_);
    source_ = std::move(stored);
    samples = source_->samples(sequence_);
    if (samples < 2)
      usage_error("the data is too short",
                  fmt::format("{} has {} tokens; each sample takes {}, and at least 2 samples are needed", data,
                              source_->count(), sequence_ + 1),
                  "use a shorter --seq-length or more text");
  }
  documents_.require_token_below(shape.vocabulary);
  sampler_ = std::make_unique<Sampler>(samples, seed, held_out_share);
}

ReadSamples Dataset::reader(std::int64_t (Sampler::*sample)(std::int64_t) const) const {
  return [this, sample](std::int64_t first, std::int64_t samples, const SampleRows& rows) {
    std::vector<std::int64_t> which;
    for (std::int64_t i = 0; i < samples; ++i) which.push_back(((*sampler_).*sample)(first + i));
    fill_batch(*source_, which, sequence_, rows, documents_);
  };
}

ReadSamples Dataset::training() const { return reader(&Sampler::training_sample); }
ReadSamples Dataset::validation() const { return reader(&Sampler::validation_sample); }

}  // namespace chorale::train
