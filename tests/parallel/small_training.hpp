// Trains a small model on one rank.
#pragma once
#include "parallel/state/resume.hpp"
#include "src/data/sampler.hpp"
#include "src/data/synthetic.hpp"

namespace chorale::test {

inline TrainingOptions small(const char* numerics = "fast", DType compute = DType::f32) {
  TrainingOptions o{.shape = {ModelFamily::gpt2, 2, 4, 4, 32, 128, 16, 96}};
  o.shape.dropout = 0.1;
  o.numerics = named<NumericsKind>(numerics);
  o.compute = compute;
  o.batch.global = o.batch.micro = 8;
  o.optimizer.rate = {.decay = RateDecay::cosine, .peak = 5e-3, .minimum = 1e-4, .warmup = 5, .steps = 100};
  return o;
}

struct SmallRun {
  HostMemory host;
  SystemClock clock;
  SyntheticLanguage language{96, 7};
  Sampler sampler{1000, 7, 0.1};
  Training training;

  explicit SmallRun(const TrainingOptions& options) : SmallRun(options, host) {}
  SmallRun(const TrainingOptions& options, Memory& memory) : training(options, memory, clock) {}
  ReadSamples read() {
    return [this](std::int64_t first, std::int64_t samples, const SampleRows& rows) {
      std::vector<std::int64_t> which;
      for (std::int64_t i = 0; i < samples; ++i) which.push_back(sampler.training_sample(first + i));
      fill_batch(language, which, 16, rows);
    };
  }
  std::vector<StepResult> steps(int count) {
    std::vector<StepResult> all;
    for (int i = 0; i < count; ++i) all.push_back(training.step(read()));
    return all;
  }
  // Returns all bytes of the weights and optimizer moments.
  std::vector<std::byte> state() {
    std::vector<std::byte> all;
    for (const StateTensor& t : state_of(training)) {
      const auto* bytes = static_cast<const std::byte*>(t.data.data);
      all.insert(all.end(), bytes, bytes + t.data.bytes());
    }
    return all;
  }
};

inline const std::tuple<const char*, DType> modes[] = {
    {"fast", DType::f32}, {"fast", DType::bf16}, {"fast", DType::f16}, {"exact", DType::f32}};

}  // namespace chorale::test
