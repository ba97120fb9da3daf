// Buffer owns bytes; Slice borrows elements of them; Allocator pairs a Memory with the ledger that accounts for it.
//
//   Allocator host(memory, ledger);
//   Buffer b = host.allocate(1 << 20, Category::grads);     // throws a named error when refused
//   Slice s{b.data(), 1 << 18, DType::f32, b.device()};     // what collectives and kernels take
#pragma once
#include <cstdint>

#include "src/memory/dtype.hpp"
#include "src/memory/memory.hpp"

namespace chorale {

struct Slice {
  void* data = nullptr;
  std::int64_t count = 0;
  DType dtype = DType::f32;
  Device device = {};
  Memory* memory = nullptr;  // who copies, of what is on a device

  std::int64_t bytes() const { return count * size_of(dtype); }
  Slice narrow(std::int64_t first, std::int64_t length) const;  // bounds-checked
};

class Buffer {
 public:
  Buffer() = default;
  Buffer(Memory& memory, Ledger& ledger, std::int64_t bytes, Category category);
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer();

  void* data() const { return data_; }  // nullptr when phantom
  std::int64_t bytes() const { return bytes_; }
  Category category() const { return category_; }
  Memory* memory() const { return memory_; }
  Device device() const { return memory_ ? memory_->device() : Device{}; }
  bool phantom() const { return memory_ && !memory_->stores(); }

 private:
  void swap(Buffer& other) noexcept;
  Memory* memory_ = nullptr;
  Ledger* ledger_ = nullptr;
  void* data_ = nullptr;
  std::int64_t bytes_ = 0;
  Category category_ = Category::workspace;
};

// Both must outlive what was allocated.
class Allocator {
 public:
  Allocator(Memory& memory, Ledger& ledger) : memory_(memory), ledger_(ledger) {}
  Buffer allocate(std::int64_t bytes, Category category) { return Buffer(memory_, ledger_, bytes, category); }
  Ledger& ledger() const { return ledger_; }
  Memory& memory() const { return memory_; }
  Device device() const { return memory_.device(); }

 private:
  Memory& memory_;
  Ledger& ledger_;
};

}  // namespace chorale
