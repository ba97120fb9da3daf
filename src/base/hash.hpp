// Hashes of a few integers. Ranks compare the hashes, so a hash must not depend on the machine. The hash functions are not
// cryptographic.
#pragma once
#include <cstdint>

namespace chorale {

// The finalizer of SplitMix64 (Steele et al. 2014): flipping one bit of x flips about half of the bits of the result.
constexpr std::uint64_t scrambled(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// Extends the hash of a sequence by its next element.
constexpr std::uint64_t hash_with(std::uint64_t hash, std::uint64_t next) {
  hash = (hash ^ (next + 1)) * 0x9e3779b97f4a7c15u;
  return hash ^ (hash >> 29);
}

}  // namespace chorale
