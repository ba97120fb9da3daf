// Whether the tests are built with a sanitizer, and helpers for tests that do less in this case. Sanitizers reserve
// terabytes of addresses and keep freed memory.
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

// Returns all elements of a list of trainings. Under ThreadSanitizer, a training takes ten times as long, so only every
// seventh element is returned. This is enough, because the layouts of a list differ little in how threads synchronize.
template <class T>
std::vector<T> some(const std::vector<T>& all) {
  std::vector<T> taken;
  for (std::size_t i = all.size() / 2 % one_of; i < all.size(); i += one_of) taken.push_back(all[i]);
  return taken;
}

}  // namespace chorale::test
