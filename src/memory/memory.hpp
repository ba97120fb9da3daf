// Memory allocation. A Memory object allocates ("lends") blocks of one kind of memory: heap, file, GPU or phantom memory.
// Phantom memory is counted but has no storage; it shows how much memory a run would need. For ledgers, see
// chorale/ledger.hpp.
//
//   Ledger ── Buffer ── lent by ── Memory (host | file | phantom | cuda | pinned)
#pragma once
#include <chorale/ledger.hpp>
#include <cstdint>
#include <cstring>
#include <memory>

#include "src/memory/async_copy.hpp"
#include "src/memory/copy_meter.hpp"

namespace chorale {

struct DeviceKernels;  // src/math/device_kernels.hpp

// The free blocks that a memory keeps for reuse. The ratio largest / bytes measures fragmentation; the ratio is 1 if all
// free bytes form one block. If the ratio is small, a large request can need fresh memory although the total of free bytes
// would suffice.
struct KeptBlocks {
  std::int64_t bytes = 0, largest = 0;
};

class Memory {
 public:
  virtual ~Memory() = default;
  virtual Device device() const = 0;
  virtual bool stores() const { return true; }  // whether blocks have storage; false for phantom memory
  virtual void* take(std::int64_t bytes) = 0;   // returns memory aligned to 64 bytes; on failure, returns nullptr and sets
                                                // errno
  virtual void give_back(void* place, std::int64_t bytes) noexcept = 0;
  virtual std::int64_t free_bytes() const { return -1; }  // number of bytes that can still be allocated; −1: unknown

  virtual KeptBlocks kept() const { return {}; }
  virtual void return_kept() noexcept {}  // frees the kept blocks
  // Tells the memory that the contents of an allocated block are no longer needed, so that the kernel can reclaim the
  // block's pages. Only needed for kinds of memory that keep the pages of a returned block.
  virtual void return_pages(void*, std::int64_t) noexcept {}

  // Copies to and from the host, ordered with the device's work. Device work that is enqueued after copy_in sees the new
  // bytes. copy_out first waits for all earlier work and returns after the bytes have arrived. After either call, the caller
  // can reuse the host memory.
  virtual void copy_in(void* to, const void* from_host, std::int64_t bytes) {
    std::memcpy(to, from_host, static_cast<std::size_t>(bytes));
  }
  virtual void copy_out(void* to_host, const void* from, std::int64_t bytes) {
    std::memcpy(to_host, from, static_cast<std::size_t>(bytes));
  }
  // Copies within this memory. On a device, the copy is made in stream order.
  virtual void copy(void* to, const void* from, std::int64_t bytes) {
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
  }
  virtual void clear(void* place, std::int64_t bytes) { std::memset(place, 0, static_cast<std::size_t>(bytes)); }
  // Pins host memory that is copied often, if a device benefits from that; release() unpins it.
  virtual void pin(void* /*host*/, std::int64_t /*bytes*/) {}
  virtual void release(void* /*host*/) noexcept {}
  // Returns an object for asynchronous copies. The default object copies synchronously.
  virtual std::unique_ptr<AsyncCopy> async_copy();
  virtual const DeviceKernels* kernels() const { return nullptr; }  // the kernels that compute on this device
};

class HostMemory final : public Memory {
 public:
  Device device() const override { return {}; }
  void* take(std::int64_t bytes) override;
  void give_back(void* place, std::int64_t bytes) noexcept override;
};

class PhantomMemory final : public Memory {
 public:
  // Copies transfer no bytes; they are only reported to the meter, if there is one.
  explicit PhantomMemory(Device pretended = {}, CopyMeter* meter = nullptr) : device_(pretended), meter_(meter) {}
  Device device() const override { return device_; }
  bool stores() const override { return false; }
  void* take(std::int64_t) override { return nullptr; }
  void give_back(void*, std::int64_t) noexcept override {}
  std::unique_ptr<AsyncCopy> async_copy() override;

 private:
  Device device_;
  CopyMeter* meter_;
};

}  // namespace chorale
