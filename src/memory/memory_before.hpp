// A memory that takes its blocks from an inner memory on the same device. Copies are forwarded to the inner memory.
#pragma once
#include "src/memory/memory.hpp"

namespace chorale {

class MemoryBefore : public Memory {
 public:
  explicit MemoryBefore(Memory& from) : from_(from) {}
  Device device() const override { return from_.device(); }
  bool stores() const override { return from_.stores(); }
  std::int64_t free_bytes() const override { return from_.free_bytes(); }
  void copy_in(void* to, const void* from_host, std::int64_t bytes) override { from_.copy_in(to, from_host, bytes); }
  void copy_out(void* to_host, const void* from, std::int64_t bytes) override { from_.copy_out(to_host, from, bytes); }
  void copy(void* to, const void* from, std::int64_t bytes) override { from_.copy(to, from, bytes); }
  void clear(void* place, std::int64_t bytes) override { from_.clear(place, bytes); }
  void pin(void* host, std::int64_t bytes) override { from_.pin(host, bytes); }
  void release(void* host) noexcept override { from_.release(host); }
  std::unique_ptr<AsyncCopy> async_copy() override { return from_.async_copy(); }
  const DeviceKernels* kernels() const override { return from_.kernels(); }

 protected:
  Memory& from_;
};

}  // namespace chorale
