#include "src/memory/buffer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "src/base/error.hpp"
#include "src/base/spare_memory.hpp"
#include "src/base/text.hpp"

namespace chorale {

constexpr std::int64_t most_bytes = std::int64_t{1} << 62;  // so that sums of sizes fit in 64 bits

Slice Slice::narrow(std::int64_t first, std::int64_t length) const {
  require(first >= 0 && length >= 0 && length <= count && first <= count - length,
          "{} elements from index {} exceed a slice of {}", length, first, count);
  auto* start = data ? static_cast<std::byte*>(data) + first * size_of(dtype) : nullptr;  // nullptr stays nullptr
  return {start, length, dtype, device, memory};
}

Device Buffer::device() const { return memory_ ? memory_->device() : Device{}; }
bool Buffer::phantom() const { return memory_ && !memory_->stores(); }
Device Allocator::device() const { return memory_.device(); }

Buffer::Buffer(Memory& memory, Ledger& ledger, std::int64_t bytes, Category category)
    : memory_(&memory), ledger_(&ledger), bytes_(bytes), category_(category) {
  require(bytes >= 0 && bytes <= most_bytes, "a buffer cannot have {} bytes", bytes);
  const bool allowed = ledger.allows(bytes);
  if (allowed && memory.stores()) data_ = memory.take(bytes);
  if (!allowed || (memory.stores() && !data_)) {
    std::string why = fmt::format("the limit is {} per rank", human_bytes(ledger.limit()));
    std::int64_t room = ledger.limit();
    if (allowed) {
      const int error = errno;
      const std::int64_t free = memory.free_bytes();
      why = fmt::format("{} memory: {}", name_of(memory.device()), std::strerror(error));
      if (memory.device().is_host() && free_addresses() >= 0) why += " under a limit of the address space (ulimit -v)";
      if (free >= 0) why += fmt::format(", {} free", human_bytes(free));
      room = ledger.total() + std::max<std::int64_t>(free, 0);
    }
    throw MemoryRefused(
        fmt::format("memory refused: {} for {}", human_bytes(bytes), category_names[static_cast<std::size_t>(category)]),
        fmt::format("{}; requested {} bytes, held now: {}", why, bytes, ledger.summary()),
        "use a smaller model or batch, recompute activations, or split the model over more ranks", room);
  }
  ledger.add(category, bytes);
}

Buffer::~Buffer() {
  if (!memory_) return;
  ledger_->add(category_, -bytes_);
  if (data_) memory_->give_back(data_, bytes_);
}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  Buffer old(std::move(*this));
  swap(other);
  return *this;
}

void Buffer::count_as(Category category) {
  require(memory_ != nullptr, "a buffer without bytes counts nowhere");
  ledger_->add(category_, -bytes_);
  ledger_->add(category, bytes_);
  category_ = category;
}

void Buffer::swap(Buffer& other) noexcept {
  std::swap(memory_, other.memory_);
  std::swap(ledger_, other.ledger_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(category_, other.category_);
}

}  // namespace chorale
