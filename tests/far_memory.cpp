#include "tests/far_memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <random>

namespace chorale::test {
namespace {

class LateAsyncCopy final : public AsyncCopy {
 public:
  LateAsyncCopy(std::unique_ptr<AsyncCopy> at_once, std::uint32_t seed) : at_once_(std::move(at_once)), random_(seed) {}
  void fetch(void* to_host, const void* from, std::int64_t bytes) override {
    defer([=, this] { at_once_->fetch(to_host, from, bytes); });
  }
  void send(void* to, const void* from_host, std::int64_t bytes) override {
    defer([=, this] { at_once_->send(to, from_host, bytes); });
  }
  bool over() override {
    if (polls_ > 0 && --polls_ == 0) copy_();
    return polls_ == 0;
  }

 private:
  void defer(std::function<void()> copy) {
    copy_ = std::move(copy);
    polls_ = 1 + random_() % 16;
  }

  std::unique_ptr<AsyncCopy> at_once_;
  std::minstd_rand random_;
  std::function<void()> copy_;
  std::uint64_t polls_ = 0;
};

}  // namespace

std::unique_ptr<AsyncCopy> FarMemory::async_copy() {
  const auto place = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(this) >> 4);  // differs between ranks
  return std::make_unique<LateAsyncCopy>(Memory::async_copy(), place + static_cast<std::uint32_t>(getpid()) + ++crossings_);
}

void* FarMemory::take(std::int64_t bytes) {
  const Descriptor file(memfd_create("far", MFD_CLOEXEC));
  const auto length = static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1));
  if (!file || ftruncate(file.get(), static_cast<off_t>(length)) != 0) return nullptr;
  void* const shown = mmap(nullptr, length, PROT_NONE, MAP_SHARED, file.get(), 0);
  void* const reachable = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  require(shown != MAP_FAILED && reachable != MAP_FAILED, "far memory of {} bytes cannot be mapped", bytes);
  pieces_[static_cast<std::byte*>(shown)] = {static_cast<std::byte*>(reachable), static_cast<std::int64_t>(length)};
  return shown;
}

void FarMemory::give_back(void* place, std::int64_t) noexcept {
  const auto piece = pieces_.find(static_cast<std::byte*>(place));
  if (piece == pieces_.end()) return;
  munmap(place, static_cast<std::size_t>(piece->second.bytes));
  munmap(piece->second.reachable, static_cast<std::size_t>(piece->second.bytes));
  pieces_.erase(piece);
}

void* FarMemory::reached(const void* place, std::int64_t bytes) const {
  if (bytes == 0 && !pieces_.empty()) return pieces_.begin()->second.reachable;  // an empty buffer has no meaningful address
  const auto* const start = static_cast<const std::byte*>(place);
  auto piece = pieces_.upper_bound(start);
  require(piece != pieces_.begin(), "{} is not an address on the device", place);
  --piece;
  const std::int64_t offset = start - piece->first;
  require(offset + bytes <= piece->second.bytes, "{} bytes from offset {} exceed a device allocation of {} bytes", bytes,
          offset, piece->second.bytes);
  return piece->second.reachable + offset;
}

void FarMemory::copy_in(void* to, const void* from_host, std::int64_t bytes) {
  Memory::copy_in(reached(to, bytes), from_host, bytes);
}
void FarMemory::copy_out(void* to_host, const void* from, std::int64_t bytes) {
  Memory::copy_out(to_host, reached(from, bytes), bytes);
}
void FarMemory::clear(void* place, std::int64_t bytes) { Memory::clear(reached(place, bytes), bytes); }

}  // namespace chorale::test
