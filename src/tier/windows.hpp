// Flat tensors of equal length, visited window by window, so that those in a slow tier need little memory. While a window is
// computed, the next one is read and the one before is written:
//
//   set 0    read ▸ compute ▸ write                       read ▸ …
//   set 1            read   ▸ compute ▸ write
//   set 2                      read   ▸ compute ▸ write            three sets of buffers, of constant size
#pragma once
#include <functional>
#include <span>
#include <vector>

#include "src/tier/staged.hpp"

namespace chorale {

struct WindowPart {
  Tensor whole;  // in memory or in a slow tier; empty: nothing
  Category category = Category::optimizer;
  bool reads = true, writes = false;
};
using WindowParts = std::vector<WindowPart>;

struct Window {
  std::size_t item;           // which of the lists of tensors
  std::int64_t first, count;  // of their elements
};

// Calls work(window, here) for all windows of all items in order. Every item has as many parts, of the same types; here[i]
// has the window's elements of part i. A part in a slow tier that is not read begins with zeros.
void through_windows(const std::vector<WindowParts>& items, std::int64_t elements, Allocator& memory, TierTraffic& traffic,
                     const std::function<void(const Window& window, std::span<const Tensor> here)>& work);

}  // namespace chorale
