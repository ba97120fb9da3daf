// The order in which a run visits the samples of its data. The index of a run's k-th sample is a pure function of the seed,
// k, the number of samples in the data and the held-out fraction. The function needs no tables or state and does not depend
// on the rank. A checkpoint stores a single number, the count of consumed samples. A run resumed on any number of ranks
// continues with the next sample.
//
//   all samples   0 ……………………………… training()  …… total       the last samples are held out for validation
//   epoch e       a permutation of [0, training()), keyed by (seed, e)
#pragma once
#include <cstdint>

namespace chorale {

// A permutation of [0, size), computed element by element with a Feistel network (Luby & Rackoff 1988). The network works on
// as many bits as an index needs, rounded up to an even number. Each round swaps the two halves of these bits and XORs one
// half with a Philox number derived from the other half. A round can be inverted, so the network is a bijection. A result
// outside [0, size) is passed through the network again (cycle walking, Black & Rogaway 2002). On average, an index needs
// fewer than four passes. Computing one element of the permutation takes about 0.2 µs.
class Permutation {
 public:
  Permutation(std::int64_t size, std::uint64_t seed, std::uint32_t number);
  std::int64_t operator()(std::int64_t index) const;

 private:
  std::int64_t size_;
  std::uint64_t seed_;
  std::uint32_t number_;
  int half_bits_;
};

class Sampler {
 public:
  Sampler(std::int64_t samples, std::uint64_t seed, double held_out);

  std::int64_t training() const { return training_; }
  std::int64_t validation() const { return samples_ - training_; }
  std::int64_t training_sample(std::int64_t consumed) const;  // index of the sample to train on after `consumed` samples
  std::int64_t validation_sample(std::int64_t index) const;   // visits the validation samples in order; restarts after the
                                                              // last sample
  std::int64_t epoch(std::int64_t consumed) const { return consumed / training_; }

 private:
  std::int64_t samples_, training_;
  std::uint64_t seed_;
};

}  // namespace chorale
