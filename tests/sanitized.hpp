// Whether the tests are built with a sanitizer that reserves terabytes of addresses and keeps freed memory, and what a test
// then leaves out.
#pragma once
#include <cstddef>
#include <vector>

namespace chorale::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool sanitized = true;
#else
constexpr bool sanitized = false;
#endif

#if defined(__SANITIZE_THREAD__)
constexpr std::size_t one_of = 7;
#else
constexpr std::size_t one_of = 1;
#endif

// All elements of a list of trainings; under ThreadSanitizer, where a training takes ten times as long, every seventh. The
// layouts of a list differ more in what the ranks compute than in how their threads synchronize.
template <class T>
std::vector<T> some(const std::vector<T>& all) {
  std::vector<T> taken;
  for (std::size_t i = all.size() / 2 % one_of; i < all.size(); i += one_of) taken.push_back(all[i]);
  return taken;
}

}  // namespace chorale::test
