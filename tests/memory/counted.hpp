// A Memory that counts the blocks and bytes that it has handed out. The capacity of this Memory can be limited.
#pragma once
#include "src/memory/memory.hpp"

namespace chorale::test {

class Counted final : public Memory {
 public:
  explicit Counted(std::int64_t room = std::int64_t{1} << 40) : room_(room) {}
  Device device() const override { return {}; }
  void* take(std::int64_t bytes) override {
    if (held + bytes > room_) return nullptr;
    ++taken;
    ++blocks;
    held += bytes;
    return host_.take(bytes);
  }
  void give_back(void* place, std::int64_t bytes) noexcept override {
    --blocks;
    held -= bytes;
    host_.give_back(place, bytes);
  }
  std::int64_t taken = 0, blocks = 0, held = 0;

 private:
  HostMemory host_;
  std::int64_t room_;
};

}  // namespace chorale::test
