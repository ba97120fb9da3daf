#include "src/memory/pool.hpp"

#include <algorithm>

namespace chorale {
namespace {

// If memory is scarce, the pages of freed blocks of at least this size are returned to the kernel, as malloc does.
// Otherwise, freed activations of 0.4 to 1.6 MB would keep 100 MB of shared memory allocated, for a model of 124 million
// parameters.
constexpr std::int64_t returned_by_page = 128 << 10;

}  // namespace

Pool::~Pool() { empty(); }

void* Pool::take(std::int64_t bytes) {
  std::int64_t size = bytes;
  void* place = kept_for(bytes, size);
  if (!place && most_held_ > 0) return_kept_until(most_held_ - bytes);
  if (!place) place = from_.take(bytes);
  if (!place && stores()) {  // freeing the kept blocks might free enough memory
    empty();
    place = from_.take(bytes);
  }
  if (!place) return nullptr;
  if (size > bytes) larger_[place] = size;
  lent_ += bytes;
  spare_ += size - bytes;
  most_lent_ = std::max(most_lent_, lent_);
  return place;
}

// Returns the smallest kept block that fits `bytes`, and sets `size` to its size. Returns nullptr if no kept block fits.
void* Pool::kept_for(std::int64_t bytes, std::int64_t& size) {
  const std::int64_t most_spare = most_held_ > 0 ? 0 : bytes / 8;
  const auto smallest = kept_.lower_bound(bytes);
  if (smallest == kept_.end() || smallest->first > bytes + most_spare) return nullptr;
  size = smallest->first;
  const auto newest = std::prev(kept_.upper_bound(size));  // chooses the newest block, because it might still be in a cache
  void* const place = newest->second;
  kept_.erase(newest);
  kept_bytes_ -= size;
  return place;
}

void Pool::give_back(void* place, std::int64_t bytes) noexcept {
  std::int64_t size = bytes;
  if (const auto found = larger_.find(place); found != larger_.end()) {
    size = found->second;
    larger_.erase(found);
  }
  lent_ -= bytes;
  spare_ -= size - bytes;
  try {
    kept_.emplace(size, place);
    kept_bytes_ += size;
  } catch (...) {
    from_.give_back(place, size);
  }
  if (kept_bytes_ > 2 * most_lent_) empty();
}

// Frees kept blocks, largest first, until the pool holds at most `held` bytes or has no kept block.
void Pool::return_kept_until(std::int64_t held) noexcept {
  while (!kept_.empty() && lent_ + spare_ + kept_bytes_ > held) {
    const auto largest = std::prev(kept_.end());
    if (most_held_ > 0 && largest->first >= returned_by_page) from_.return_pages(largest->second, largest->first);
    from_.give_back(largest->second, largest->first);
    kept_bytes_ -= largest->first;
    kept_.erase(largest);
  }
}

}  // namespace chorale
