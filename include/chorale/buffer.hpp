// A Buffer owns memory. A Slice refers to elements in memory but does not own the memory. An Allocator creates buffers and
// counts their bytes in a Ledger.
//
//   Allocator& memory = world.allocator();                       memory that peers read directly
//   Buffer b = memory.allocate(1 << 20, Category::comm);         throws MemoryRefused if memory is insufficient
//   Slice s{b.data(), 1 << 18, DType::f32, b.device()};          the argument type of collectives; may refer to any memory
#pragma once
#include <array>
#include <chorale/element.hpp>
#include <chorale/error.hpp>
#include <chorale/ledger.hpp>
#include <cstdint>
#include <memory>
#include <source_location>
#include <string>

namespace chorale {

class Memory;  // a source of memory: the heap, a file, a GPU

struct Slice {
  void* data = nullptr;
  std::int64_t count = 0;
  DType dtype = DType::f32;
  Device device = {};
  Memory* memory = nullptr;  // for device data: the Memory that can copy the data

  std::int64_t bytes() const { return count * size_of(dtype); }
  Slice narrow(std::int64_t first, std::int64_t length) const;  // bounds-checked
};

// Thrown when an allocation is refused. with_fix() returns the same error with a different fix line, for callers that know a
// better fix.
class MemoryRefused : public Error {
 public:
  MemoryRefused(const std::string& what, const std::string& numbers, const std::string& fix, std::int64_t room_bytes,
                std::source_location where = std::source_location::current())
      : Error(Exit::runtime, what, numbers, fix, where), what_(what), numbers_(numbers), room_bytes_(room_bytes) {}
  std::int64_t room_bytes() const { return room_bytes_; }  // the maximum number of bytes that this rank can hold in total
  Error with_fix(const std::string& fix) const { return {exit(), what_, numbers_, fix, where()}; }

 private:
  std::string what_, numbers_;
  std::int64_t room_bytes_;
};

class Buffer {
 public:
  Buffer() = default;
  Buffer(Memory& memory, Ledger& ledger, std::int64_t bytes, Category category);
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer();

  void* data() const { return data_; }  // nullptr for a phantom buffer
  std::int64_t bytes() const { return bytes_; }
  Category category() const { return category_; }
  void count_as(Category category);  // moves the buffer's bytes to this category of the ledger
  Memory* memory() const { return memory_; }
  Device device() const;
  bool phantom() const;  // whether the ledger counts the bytes, but no memory is allocated

 private:
  void swap(Buffer& other) noexcept;
  Memory* memory_ = nullptr;
  Ledger* ledger_ = nullptr;
  void* data_ = nullptr;
  std::int64_t bytes_ = 0;
  Category category_ = Category::workspace;
};

// Allocates buffers in a Memory and counts their bytes in a Ledger. The Memory and the Ledger must outlive all buffers of
// the Allocator.
class Allocator {
 public:
  Allocator(Memory& memory, Ledger& ledger) : memory_(memory), ledger_(ledger) {}
  Buffer allocate(std::int64_t bytes, Category category) {
    Memory* const other = others_[static_cast<std::size_t>(category)];
    return Buffer(other ? *other : memory_, ledger_, bytes, category);
  }
  // Makes later allocations of this category use `other`, a different Memory on the same device.
  void take_from(Memory& other, Category category) { others_[static_cast<std::size_t>(category)] = &other; }
  Ledger& ledger() const { return ledger_; }
  Memory& memory() const { return memory_; }
  Device device() const;

 private:
  Memory& memory_;
  Ledger& ledger_;
  std::array<Memory*, categories> others_{};  // null where memory_ is used
};

// The memory of GPU `index`, for Communicator::use_device, or pinned host memory (index −1). Throws if the CUDA plugin does
// not load. If the GPU does not work, the first allocation throws.
std::shared_ptr<Memory> cuda_memory(int index);

}  // namespace chorale
