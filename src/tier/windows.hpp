// Visits flat tensors of equal length window by window, so that tensors in a slow tier need little memory. While one window
// is computed, the next window is read and the previous window is written:
//
//   set 0    read ▸ compute ▸ write                       read ▸ …
//   set 1            read   ▸ compute ▸ write
//   set 2                      read   ▸ compute ▸ write            three sets of buffers, of constant size
//
// A walk visits windows while the program does other work. progress() computes a window if its elements have arrived, and
// never waits.
#pragma once
#include <functional>
#include <span>
#include <vector>

#include "src/tier/staged.hpp"

namespace chorale {

struct WindowPart {
  Tensor whole;  // in memory or in a slow tier; if it is empty, this part does not exist
  Category category = Category::optimizer;
  bool reads = true, writes = false;
  Tensor target = {};  // the tensor to which the elements are written, in the same kind of memory as `whole`; if it is
                       // empty, `whole` itself
};
using WindowParts = std::vector<WindowPart>;

struct Window {
  std::size_t item;           // the item number that the caller passed to add()
  std::int64_t first, count;  // the range of elements
};

class WindowWalk {
 public:
  // Calls work(window, here) for each window, where `here[i]` has the window's elements of part i. If a part in a slow tier
  // is not read, its elements in `here` are initially zero. Every list of parts has as many parts as `like`, with the same
  // types and in the same kinds of memory. If `pins` is true, the buffers of tensors in a file are pinned (IoQueue::pin). If
  // each buffer serves many windows, pinning saves a quarter of the processor time of copies, 14 ms per GiB. If a buffer
  // serves few windows, pinning costs as much time as it saves.
  using Work = std::function<void(const Window& window, std::span<const Tensor> here)>;
  WindowWalk(const WindowParts& like, std::int64_t elements, Allocator& memory, TierTraffic& traffic, Work work,
             std::size_t sets = 3, bool pins = true);
  ~WindowWalk();

  void add(std::size_t item, const WindowParts& parts);  // parts.front() is not empty
  void progress() { advance(false, windows_.size()); }
  void finish();                  // visits all windows
  void finish(std::size_t item);  // visits the windows of this item and of all earlier items

 private:
  class Buffers;
  struct Visit {
    Window window;
    WindowParts parts;  // the parts of the complete item
  };
  void advance(bool waits, std::size_t end);
  Buffers& set_of(std::size_t i);

  std::int64_t elements_;
  TierTraffic& traffic_;
  Work work_;
  std::vector<Buffers> sets_;
  std::vector<Visit> windows_;
  std::size_t next_ = 0, reading_ = 0;  // the first window not yet computed, and the first whose read has not begun
};

// Visits all windows of all items in order. Allocates nothing if there are no windows.
void through_windows(const std::vector<WindowParts>& items, std::int64_t elements, Allocator& memory, TierTraffic& traffic,
                     const WindowWalk::Work& work);

}  // namespace chorale
