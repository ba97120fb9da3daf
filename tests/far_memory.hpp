// Memory that stands in for a device's on machines without one. The CPU cannot use its addresses; its bytes can be
// reached only through the copy functions. Code that dereferences one crashes, as with a real device.
//
//   take() ──▶ [ no access ]        the same pages, mapped twice
//   copies ──▶ [ read, write ]
//
// Its asynchronous copies take several polls before a byte moves, a different number each time: a device may be late, and
// ranks never run alike.
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

  // The address where the bytes really are. Throws unless all of them are in one piece that was allocated here and not
  // yet returned.
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
