#include "src/memory/planned_arena.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "src/base/error.hpp"
#include "src/base/text.hpp"

namespace chorale {

PlannedArena::~PlannedArena() {
  if (piece_) from_.give_back(piece_, report_.bytes);
}

void PlannedArena::begin_step() {
  phase_ = phase_ == Phase::waits ? Phase::records : Phase::replays;
  next_ = 0;
}

void PlannedArena::end_step() {
  if (phase_ == Phase::records) plan();
  phase_ = Phase::between;
}

void PlannedArena::plan() {
  open_.clear();
  const auto has_place = [](const Lifetime& request) { return request.ends > 0 && request.bytes > 0; };
  std::vector<Lifetime> returned;
  std::ranges::copy_if(requests_, std::back_inserter(returned), has_place);
  const OfflinePlacement placement = place_offline(returned);
  auto offset = placement.offsets.begin();
  for (const Lifetime& request : requests_) offsets_.push_back(has_place(request) ? *offset++ : -1);
  report_.bytes = placement.bytes;
  report_.least = placement.least;
  if (placement.bytes == 0) return;
  from_.return_kept();  // frees the blocks that served the first step
  piece_ = static_cast<std::byte*>(from_.take(placement.bytes));
  if (piece_) return;
  report_.bytes = 0;
  throw Error(Exit::runtime, "there is no room for contiguous memory",
              fmt::format("one piece of {} was requested; at most {} of it live at once", human_bytes(placement.bytes),
                          human_bytes(placement.least)),
              "leave out --contiguous-memory, or use a smaller micro-batch");
}

void* PlannedArena::take(std::int64_t bytes) {
  if (phase_ == Phase::replays)
    if (void* const place = planned(bytes)) return place;
  void* const place = from_.take(bytes);
  if (phase_ == Phase::records && place) {
    open_[place] = requests_.size();
    requests_.push_back({bytes, time_++, 0});
  }
  return place;
}

void* PlannedArena::planned(std::int64_t bytes) {
  const std::size_t i = next_++;
  const bool known = i < requests_.size();
  if (known && offsets_[i] < 0) return nullptr;
  if (!known || bytes > requests_[i].bytes || !is_free(offsets_[i], std::max<std::int64_t>(bytes, 1))) {
    ++report_.unplanned;
    return nullptr;
  }
  ++report_.served;
  if (bytes > 0) lent_[offsets_[i]] = bytes;
  return piece_ + offsets_[i];
}

bool PlannedArena::is_free(std::int64_t first, std::int64_t bytes) const {
  const auto next = lent_.lower_bound(first);
  if (next != lent_.end() && next->first < first + bytes) return false;
  return next == lent_.begin() || std::prev(next)->first + std::prev(next)->second <= first;
}

void PlannedArena::give_back(void* place, std::int64_t bytes) noexcept {
  const std::int64_t offset = static_cast<std::byte*>(place) - piece_;
  if (piece_ && offset >= 0 && offset < report_.bytes) {
    if (bytes > 0) lent_.erase(offset);
    return;
  }
  if (const auto found = open_.find(place); found != open_.end()) {
    requests_[found->second].ends = ++time_;
    open_.erase(found);
  }
  from_.give_back(place, bytes);
}

PlannedArena::Report PlannedArena::report() const {
  Report report = report_;
  std::int64_t end = 0;
  const auto free_until = [&](std::int64_t first) {
    report.free += first - end;
    report.largest_free = std::max(report.largest_free, first - end);
  };
  for (const auto& [first, bytes] : lent_) {
    free_until(first);
    end = first + bytes;
  }
  free_until(report.bytes);
  return report;
}

KeptBlocks PlannedArena::kept() const {
  const KeptBlocks behind = from_.kept();
  const Report here = report();
  return {behind.bytes + here.free, std::max(behind.largest, here.largest_free)};
}

}  // namespace chorale
