// The data of a run: a token file or the embedded synthetic language, in a sampler's order. Some samples are held out for
// evaluation.
#pragma once
#include <memory>
#include <string>

#include "parallel/training.hpp"
#include "src/data/sampler.hpp"
#include "src/data/tokens.hpp"

namespace chorale::train {

class Dataset {
 public:
  // `data`: a file, or "synthetic". Throws a usage error if it does not suit this model.
  Dataset(const std::string& data, const ModelShape& shape, std::uint64_t seed);

  ReadSamples training() const;
  ReadSamples validation() const;
  std::int64_t held_out() const { return sampler_->validation(); }
  std::string name() const { return source_->name(); }
  double floor() const { return floor_; }  // the lowest possible loss if it is known, else 0

 private:
  ReadSamples reader(std::int64_t (Sampler::*sample)(std::int64_t) const) const;
  std::unique_ptr<TokenSource> source_;
  std::unique_ptr<Sampler> sampler_;
  std::int64_t sequence_;
  double floor_ = 0;
};

}  // namespace chorale::train
