#include "src/tier/windows.hpp"

#include <algorithm>

namespace chorale {
namespace {

// The buffers of one window: a Staged per part, empty for parts that are in memory.
class Buffers {
 public:
  Buffers(const WindowParts& like, std::int64_t elements, Allocator& memory) {
    for (const WindowPart& part : like) {
      const bool away = is_away(part.whole);
      staged_.push_back(away ? Staged(memory, elements, part.whole.dtype(), part.category) : Staged());
    }
  }

  void start_read(const WindowParts& parts, const Window& window, TierTraffic& traffic) {
    for (std::size_t i = 0; i < parts.size(); ++i)
      if (staged_[i] && parts[i].reads)
        staged_[i].start_read(parts[i].whole.narrow(window.first, window.count), traffic);
      else if (staged_[i])
        staged_[i].wait(), clear(staged_[i].tensor());
  }

  std::vector<Tensor> here(const WindowParts& parts, const Window& window) {
    std::vector<Tensor> all;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      staged_[i].wait();
      const bool empty = !parts[i].whole;
      all.push_back(empty        ? Tensor()
                    : staged_[i] ? staged_[i].tensor().narrow(0, window.count)
                                 : parts[i].whole.narrow(window.first, window.count));
    }
    return all;
  }

  void start_write(const WindowParts& parts, const Window& window, TierTraffic& traffic) {
    for (std::size_t i = 0; i < parts.size(); ++i)
      if (staged_[i] && parts[i].writes) staged_[i].start_write(parts[i].whole.narrow(window.first, window.count), traffic);
  }

  void wait() {
    for (Staged& staged : staged_) staged.wait();
  }

 private:
  std::vector<Staged> staged_;
};

std::vector<Window> windows_of(const std::vector<WindowParts>& items, std::int64_t elements) {
  std::vector<Window> windows;
  for (std::size_t item = 0; item < items.size(); ++item)
    for (std::int64_t first = 0, count = items[item].front().whole.count(); first < count; first += elements)
      windows.push_back({item, first, std::min(elements, count - first)});
  return windows;
}

}  // namespace

void through_windows(const std::vector<WindowParts>& items, std::int64_t elements, Allocator& memory, TierTraffic& traffic,
                     const std::function<void(const Window& window, std::span<const Tensor> here)>& work) {
  const std::vector<Window> windows = windows_of(items, elements);
  if (windows.empty()) return;
  std::vector<Buffers> sets;
  for (std::size_t set = 0; set < std::min<std::size_t>(3, windows.size()); ++set)
    sets.emplace_back(items.front(), elements, memory);
  const auto set_of = [&](std::size_t i) -> Buffers& { return sets[i % sets.size()]; };
  const auto parts_of = [&](std::size_t i) -> const WindowParts& { return items[windows[i].item]; };
  set_of(0).start_read(parts_of(0), windows[0], traffic);
  for (std::size_t i = 0; i < windows.size(); ++i) {
    const std::vector<Tensor> here = set_of(i).here(parts_of(i), windows[i]);
    if (i + 1 < windows.size()) set_of(i + 1).start_read(parts_of(i + 1), windows[i + 1], traffic);
    work(windows[i], here);
    set_of(i).start_write(parts_of(i), windows[i], traffic);
  }
  for (Buffers& set : sets) set.wait();
}

}  // namespace chorale
