#include "src/memory/pool.hpp"

namespace chorale {

Pool::~Pool() { empty(); }

void* Pool::take(std::int64_t bytes) {
  const auto found = kept_.find(bytes);
  if (found != kept_.end() && !found->second.empty()) {
    void* const place = found->second.back();
    found->second.pop_back();
    return place;
  }
  void* place = from_.take(bytes);
  if (!place && stores()) {  // returning the kept blocks may make enough room
    empty();
    place = from_.take(bytes);
  }
  return place;
}

void Pool::give_back(void* place, std::int64_t bytes) noexcept {
  try {
    kept_[bytes].push_back(place);
  } catch (...) {
    from_.give_back(place, bytes);
  }
}

void Pool::empty() noexcept {
  for (auto& [bytes, places] : kept_)
    for (void* place : places) from_.give_back(place, bytes);
  kept_.clear();
}

}  // namespace chorale
