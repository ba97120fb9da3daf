// Device memory is one address range, which is normally inaccessible. Freed blocks are kept in lists by size and are reused.
//
//   [ block ][ guard ]      the guard is checked when the block is freed
#include "tests/cuda/emulation/far.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

namespace emulation {
namespace {

constexpr std::size_t most_bytes = std::size_t{1} << 32, guard = 256, huge_page = 2 << 20;
constexpr int poison = 0xff;  // NaN if read as floats

std::size_t bytes_in(const char* variable, std::size_t otherwise) {
  const char* const bytes = std::getenv(variable);
  return bytes ? std::min<std::size_t>(std::strtoull(bytes, nullptr, 10), most_bytes) : otherwise;
}

struct Far {
  std::mutex mutex;
  std::byte* start = reserved();
  std::size_t used = 0;
  int open = 0;
  std::map<std::size_t, std::vector<std::byte*>> free;  // freed blocks by size
  std::map<void*, std::size_t> lent;                    // block → bytes requested

  std::size_t left() const;
  const bool is_open = std::getenv("EMULATED_OPEN") != nullptr;

  void protect(int how) {
    mprotect(start, (used + huge_page - 1) / huge_page * huge_page, is_open ? PROT_READ | PROT_WRITE : how);
  }

  // Uses huge pages, so that protect() changes only few pages.
  static std::byte* reserved() {
    void* const place = mmap(nullptr, most_bytes + huge_page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    const std::uintptr_t aligned = (reinterpret_cast<std::uintptr_t>(place) + huge_page - 1) / huge_page * huge_page;
    madvise(reinterpret_cast<void*>(aligned), most_bytes, MADV_HUGEPAGE);
    return reinterpret_cast<std::byte*>(aligned);
  }
};
Far& far() {
  static Far one;  // one per process, like the emulated device
  return one;
}

std::size_t Far::left() const {
  const std::size_t others = used > 0 ? bytes_in("EMULATED_BYTES_OF_OTHERS", 0) : 0;
  return total_bytes() - std::min(total_bytes(), used + others);
}

std::size_t size_with_guard(std::size_t bytes) { return (bytes + guard + guard - 1) / guard * guard; }

}  // namespace

Open::Open() {
  const std::scoped_lock lock(far().mutex);
  if (far().open++ == 0) far().protect(PROT_READ | PROT_WRITE);
}

Open::~Open() {
  const std::scoped_lock lock(far().mutex);
  if (--far().open == 0) far().protect(PROT_NONE);
}

void* take(std::size_t bytes) {
  const std::size_t size = size_with_guard(bytes);
  std::byte* place = nullptr;
  {
    const std::scoped_lock lock(far().mutex);
    auto& waiting = far().free[size];
    if (!waiting.empty()) {
      place = waiting.back();
      waiting.pop_back();
    } else {
      if (size > far().left()) return nullptr;
      place = far().start + far().used;
      far().used += size;
      if (far().open > 0) far().protect(PROT_READ | PROT_WRITE);
    }
    far().lent[place] = bytes;
  }
  const Open open;
  std::memset(place, poison, size);
  return place;
}

void give_back(void* place) {
  if (!place) return;
  auto* const start = static_cast<std::byte*>(place);
  const Open open;
  const std::scoped_lock lock(far().mutex);
  const std::size_t bytes = far().lent.at(place), size = size_with_guard(bytes);
  if (!std::all_of(start + bytes, start + size, [](std::byte b) { return b == std::byte{poison}; })) {
    std::fprintf(stderr, "emulated kernel: a write beyond the end of an allocation of %zu bytes\n", bytes);
    std::abort();
  }
  far().free[size].push_back(start);
}

bool is_far(const void* place) {
  const auto* const at = static_cast<const std::byte*>(place);
  return at >= far().start && at < far().start + most_bytes;
}

std::size_t total_bytes() { return bytes_in("EMULATED_BYTES", most_bytes); }

std::size_t free_bytes() {
  const std::scoped_lock lock(far().mutex);
  return far().left();
}

}  // namespace emulation
