// Memory that stands for a device's where there is none: its addresses are of no use to the processor, and its bytes can be reached
// through the copy functions alone. Who dereferences one crashes, as he would on a real device.
//
//   take() ──▶ [ no access ]        the same pages, mapped twice
//   copies ──▶ [ read, write ]
//
// Its crossings take so many polls before a byte moves, another number each time: a device may be late, and its ranks never alike.
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
  std::unique_ptr<Crossing> crossing() override;

  // Where the bytes really are; an error when they are not all of one piece that was taken here and not given back.
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
