// The training data of a run. Samples come from a token file or from the built-in synthetic language, in the random order of
// a Sampler. For evaluation, 1 % of the samples are held out.
#pragma once
#include <memory>
#include <string>

#include "parallel/step/training.hpp"
#include "src/data/sampler.hpp"
#include "src/data/tokens.hpp"

namespace chorale::train {

struct DocumentMask {
  std::string documents = "none";  // parsed by Documents::named
  bool split = false;              // true: documents can be longer than a sequence
  bool operator==(const DocumentMask&) const = default;
};

class Dataset {
 public:
  // `data`: the path of a token file, or "synthetic". Throws a usage error if tokens are outside the model's vocabulary, if
  // the file is too short for the sequence length, or if documents are too long.
  Dataset(const std::string& data, const ModelShape& shape, std::uint64_t seed, const DocumentMask& mask = {});

  ReadSamples training() const;
  ReadSamples validation() const;
  std::int64_t held_out() const { return sampler_->validation(); }
  std::string name() const { return source_->name(); }
  double floor() const { return floor_; }  // the lowest possible mean loss (nats per token) if it is known, else 0

 private:
  ReadSamples reader(std::int64_t (Sampler::*sample)(std::int64_t) const) const;
  Documents documents_;
  std::unique_ptr<TokenSource> source_;
  std::unique_ptr<Sampler> sampler_;
  std::int64_t sequence_;
  double floor_ = 0;
};

}  // namespace chorale::train
