#include "src/tier/windows.hpp"

#include <algorithm>

namespace chorale {
namespace {

constexpr std::size_t most_sets = 3;
constexpr std::int64_t windows_worth_pinning = 24;  // pinning saves time in walks of at least this many windows, which are
                                                    // eight per buffer

}  // namespace

// The memory of one window: a Staged per part, empty for parts that are in memory.
class WindowWalk::Buffers {
 public:
  Buffers(const WindowParts& like, std::int64_t elements, Allocator& memory, bool pins) {
    for (const WindowPart& part : like) {
      const bool away = is_away(part.whole, memory.device());
      staged_.push_back(away ? Staged(memory, elements, part.whole.dtype(), part.category) : Staged());
      if (pins && away && part.whole.device().kind == Device::Kind::file && !part.whole.phantom())
        pin(*part.whole.slice().memory, staged_.back().tensor());
    }
  }

  // Whether all copies have completed. Never waits.
  bool idle() {
    return std::ranges::all_of(staged_, [](Staged& staged) { return staged.over(); });
  }

  void start_read(const WindowParts& parts, const Window& window, TierTraffic& traffic) {
    for (std::size_t i = 0; i < parts.size(); ++i)
      if (staged_[i] && parts[i].reads)
        staged_[i].start_read(parts[i].whole.narrow(window.first, window.count), traffic);
      else if (staged_[i]) {
        staged_[i].wait();
        clear(staged_[i].tensor());
      }
  }

  std::vector<Tensor> here(const WindowParts& parts, const Window& window) {
    std::vector<Tensor> all;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const WindowPart& part = parts[i];
      staged_[i].wait();
      if (!part.whole)
        all.emplace_back();
      else if (staged_[i])
        all.push_back(staged_[i].tensor().narrow(0, window.count));
      else
        all.push_back((part.target ? part.target : part.whole).narrow(window.first, window.count));
      if (part.target && !staged_[i] && part.reads)
        copy(part.whole.narrow(window.first, window.count).slice(), all.back().slice());
    }
    return all;
  }

  void start_write(const WindowParts& parts, const Window& window, TierTraffic& traffic) {
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const Tensor& to = parts[i].target ? parts[i].target : parts[i].whole;
      if (staged_[i] && parts[i].writes) staged_[i].start_write(to.narrow(window.first, window.count), traffic);
    }
  }

  void wait() {
    for (Staged& staged : staged_) staged.wait();
  }

 private:
  void pin(Memory& file, const Tensor& here) {
    file.pin(here.slice().data, here.bytes());
    pinned_.push_back({here.slice().data, {&file}});
  }
  struct Release {
    Memory* file;
    void operator()(void* pinned) const noexcept { file->release(pinned); }
  };
  std::vector<std::unique_ptr<void, Release>> pinned_;  // declared before staged_, whose destructor waits for copies
  std::vector<Staged> staged_;
};

WindowWalk::WindowWalk(const WindowParts& like, std::int64_t elements, Allocator& memory, TierTraffic& traffic, Work work,
                       std::size_t sets, bool pins)
    : elements_(elements), traffic_(traffic), work_(std::move(work)) {
  for (std::size_t set = 0; set < sets; ++set) sets_.emplace_back(like, elements, memory, pins);
}

WindowWalk::~WindowWalk() = default;

void WindowWalk::add(std::size_t item, const WindowParts& parts) {
  const std::int64_t count = parts.front().whole.count();
  for (std::int64_t first = 0; first < count; first += elements_)
    windows_.push_back({{item, first, std::min(elements_, count - first)}, parts});
  advance(false, windows_.size());
}

WindowWalk::Buffers& WindowWalk::set_of(std::size_t i) { return sets_[i % sets_.size()]; }

// Computes windows up to `end`. While one window is computed, the next window is read into buffers whose previous contents
// have been written.
void WindowWalk::advance(bool waits, std::size_t end) {
  while (next_ < end) {
    for (; reading_ < windows_.size() && reading_ < next_ + std::min<std::size_t>(2, sets_.size()); ++reading_) {
      if (!waits && !set_of(reading_).idle()) break;
      set_of(reading_).start_read(windows_[reading_].parts, windows_[reading_].window, traffic_);
    }
    if (!waits && (reading_ <= next_ || !set_of(next_).idle())) return;
    const auto& [window, parts] = windows_[next_];
    work_(window, set_of(next_).here(parts, window));
    set_of(next_).start_write(parts, window, traffic_);
    ++next_;
  }
}

void WindowWalk::finish() {
  advance(true, windows_.size());
  for (Buffers& set : sets_) set.wait();
}

void WindowWalk::finish(std::size_t item) {
  std::size_t end = windows_.size();
  while (end > 0 && windows_[end - 1].window.item != item) --end;
  if (end == 0) return;
  advance(true, end);
  for (Buffers& set : sets_) set.wait();
}

void through_windows(const std::vector<WindowParts>& items, std::int64_t elements, Allocator& memory, TierTraffic& traffic,
                     const WindowWalk::Work& work) {
  std::int64_t windows = 0, longest = 0;
  for (const WindowParts& parts : items) {
    const std::int64_t count = parts.front().whole.count();
    windows += (count + elements - 1) / elements;
    longest = std::max(longest, count);
  }
  if (windows == 0) return;
  elements = std::min(elements, longest);
  WindowWalk walk(items.front(), elements, memory, traffic, work, std::min(most_sets, static_cast<std::size_t>(windows)),
                  windows >= windows_worth_pinning);
  for (std::size_t item = 0; item < items.size(); ++item) walk.add(item, items[item]);
  walk.finish();
}

}  // namespace chorale
