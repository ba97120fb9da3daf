// The random bits of src/base/random.hpp on a device, and dropout factors from these bits. The `place` of an element is its
// index in the complete tensor or global batch. Four consecutive indices share a Philox counter, so a thread that visits
// elements in order computes one Philox block for every four elements.
#pragma once
#include "src/math/dropout.hpp"

namespace chorale::cuda {

// Returns the random 32-bit word for an element index (`place`). Indices can be requested in any order; ascending order is
// fastest.
class Draws {
 public:
  __host__ __device__ explicit Draws(const Random& random) : random_(random) {}

  __device__ std::uint32_t at(std::uint64_t place) {
    if (place / 4 != counter_) words_ = random_.four(counter_ = place / 4);
    const std::uint64_t word = place % 4;  // not used as an index: indexing would move words_ to local memory
    return word == 0 ? words_[0] : word == 1 ? words_[1] : word == 2 ? words_[2] : words_[3];
  }

 private:
  Random random_;
  std::uint64_t counter_ = ~std::uint64_t{0};
  philox::Counter words_ = {};
};

// The dropout factors of elements: 0 or `scale` if there is dropout, otherwise 1.
template <class W>
class Factors {
 public:
  __host__ __device__ Factors(const Dropout& dropout, W scale)
      : draws_(dropout.random),
        least_(static_cast<std::uint32_t>(dropout.probability * 0x1p32)),
        scale_(scale),
        any_(dropout.probability > 0) {}

  __device__ W at(std::uint64_t place) {
    if (!any_) return 1;
    return draws_.at(place) >= least_ ? scale_ : W(0);
  }

 private:
  Draws draws_;
  std::uint32_t least_;
  W scale_;
  bool any_;
};

}  // namespace chorale::cuda
