// Memory that stands in for GPU memory on machines without a GPU. Host code that dereferences an address of this memory
// crashes, as with a real GPU. Only the copy functions can access the contents.
//
//   take() ──▶ [ no access ]        the same pages, mapped twice
//   copies ──▶ [ read, write ]
//
// An asynchronous copy happens only after 1 to 16 polls. The number is random, because real devices may be late and ranks
// run at different speeds.
#pragma once
#include <map>

#include "src/base/error.hpp"
#include "src/memory/arena.hpp"

namespace chorale::test {

class FarMemory final : public Memory {
 public:
  Device device() const override { return {Device::Kind::cuda, 0}; }
  void* take(std::int64_t bytes) override;
  void give_back(void* place, std::int64_t bytes) noexcept override;
  void copy_in(void* to, const void* from_host, std::int64_t bytes) override;
  void copy_out(void* to_host, const void* from, std::int64_t bytes) override;
  void clear(void* place, std::int64_t bytes) override;
  std::unique_ptr<AsyncCopy> async_copy() override;

  // Returns the address at which the CPU can access the `bytes` bytes at `place`. Throws unless all of them are in one live
  // allocation.
  void* reached(const void* place, std::int64_t bytes) const;

 private:
  struct Piece {
    std::byte* reachable;
    std::int64_t bytes;
  };
  std::map<const std::byte*, Piece> pieces_;
  std::uint32_t crossings_ = 0;
};

}  // namespace chorale::test
