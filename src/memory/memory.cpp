#include "src/memory/memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "src/base/round_up.hpp"
#include "src/base/text.hpp"

namespace chorale {
namespace {

constexpr std::int64_t alignment = 64;  // one cache line, which is also the size of an AVX-512 register

class AtOnce final : public AsyncCopy {
 public:
  explicit AtOnce(Memory& memory) : memory_(memory) {}
  void fetch(void* to_host, const void* from, std::int64_t bytes) override { memory_.copy_out(to_host, from, bytes); }
  void send(void* to, const void* from_host, std::int64_t bytes) override { memory_.copy_in(to, from_host, bytes); }
  bool over() override { return true; }

 private:
  Memory& memory_;
};

// A copy of phantom memory, which transfers nothing and is only reported to the meter. If the phantom memory represents a
// device, a send copies into the memory in which tensors are computed. If it represents a slow tier, a fetch copies into the
// memory in which tensors are computed.
class PhantomCopy final : public AsyncCopy {
 public:
  PhantomCopy(CopyMeter* meter, bool on_device) : meter_(meter), on_device_(on_device) {}
  void fetch(void*, const void*, std::int64_t bytes) override { copies(bytes, !on_device_); }
  void send(void*, const void*, std::int64_t bytes) override { copies(bytes, on_device_); }
  bool over() override { return true; }
  void wait() override {
    if (meter_ && number_ >= 0) meter_->waits_for_copy(number_);
    number_ = -1;
  }

 private:
  void copies(std::int64_t bytes, bool into_memory) {
    if (meter_) number_ = meter_->copies(bytes, into_memory);
  }
  CopyMeter* meter_;
  bool on_device_;
  int number_ = -1;  // number of the copy in flight
};

}  // namespace

std::unique_ptr<AsyncCopy> PhantomMemory::async_copy() {
  return std::make_unique<PhantomCopy>(meter_, device_.kind == Device::Kind::cuda);
}

std::unique_ptr<AsyncCopy> Memory::async_copy() { return std::make_unique<AtOnce>(*this); }

std::string name_of(Device device) {
  constexpr const char* names[] = {"host", "pinned", "cuda", "file"};
  const char* name = names[static_cast<std::size_t>(device.kind)];
  return device.kind == Device::Kind::cuda ? fmt::format("{}:{}", name, device.index) : name;
}

void* HostMemory::take(std::int64_t bytes) {
  return std::aligned_alloc(alignment, static_cast<std::size_t>(round_up(std::max<std::int64_t>(bytes, 1), alignment)));
}

void HostMemory::give_back(void* place, std::int64_t) noexcept { std::free(place); }

void Ledger::add(Category category, std::int64_t bytes) {
  const auto c = static_cast<std::size_t>(category);
  current_[c] += bytes;
  total_ += bytes;
  peak_[c] = std::max(peak_[c], current_[c]);
  if (total_ > total_peak_) {
    total_peak_ = total_;
    at_peak_ = current_;
  }
}

std::string Ledger::summary() const {
  std::vector<std::string> parts;
  for (std::size_t c = 0; c < categories; ++c)
    if (current_[c] != 0) parts.push_back(fmt::format("{} {}", category_names[c], human_bytes(current_[c])));
  return parts.empty() ? "nothing" : join(parts, ", ");
}

}  // namespace chorale
