#include "src/memory/memory.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "src/base/descriptor.hpp"
#include "src/base/text.hpp"

namespace chorale {
namespace {

constexpr std::int64_t alignment = 64;  // one cache line, one AVX-512 register

std::size_t rounded_up(std::int64_t bytes) {
  return static_cast<std::size_t>((bytes + alignment - 1) / alignment * alignment);
}

class AtOnce final : public AsyncCopy {
 public:
  explicit AtOnce(Memory& memory) : memory_(memory) {}
  void fetch(void* to_host, const void* from, std::int64_t bytes) override { memory_.copy_out(to_host, from, bytes); }
  void send(void* to, const void* from_host, std::int64_t bytes) override { memory_.copy_in(to, from_host, bytes); }
  bool over() override { return true; }

 private:
  Memory& memory_;
};

}  // namespace

std::unique_ptr<AsyncCopy> Memory::async_copy() { return std::make_unique<AtOnce>(*this); }

std::string name_of(Device device) {
  constexpr const char* names[] = {"host", "pinned", "cuda", "file"};
  const char* name = names[static_cast<std::size_t>(device.kind)];
  return device.kind == Device::Kind::cuda ? fmt::format("{}:{}", name, device.index) : name;
}

void* HostMemory::take(std::int64_t bytes) {
  return std::aligned_alloc(alignment, std::max(rounded_up(bytes), std::size_t{alignment}));
}

void HostMemory::give_back(void* place, std::int64_t) noexcept { std::free(place); }

void* FileMemory::take(std::int64_t bytes) {
  std::string name = (folder_ / "chorale-memory-XXXXXX").string();
  const Descriptor file(mkostemp(name.data(), O_CLOEXEC));
  if (!file) return nullptr;
  unlink(name.c_str());
  const std::size_t length = rounded_up(std::max<std::int64_t>(bytes, 1));
  // Reserve the space now, so that a full disk is an error here and not a SIGBUS at the first touch.
  if (errno = posix_fallocate(file.get(), 0, static_cast<off_t>(length)); errno != 0) return nullptr;
  void* place = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  return place == MAP_FAILED ? nullptr : place;
}

void FileMemory::give_back(void* place, std::int64_t bytes) noexcept {
  munmap(place, rounded_up(std::max<std::int64_t>(bytes, 1)));
}

void Ledger::add(Category category, std::int64_t bytes) {
  const auto c = static_cast<std::size_t>(category);
  current_[c] += bytes;
  total_ += bytes;
  peak_[c] = std::max(peak_[c], current_[c]);
  total_peak_ = std::max(total_peak_, total_);
}

std::string Ledger::summary() const {
  std::vector<std::string> parts;
  for (std::size_t c = 0; c < categories; ++c)
    if (current_[c] != 0) parts.push_back(fmt::format("{} {}", category_names[c], human_bytes(current_[c])));
  return parts.empty() ? "nothing" : join(parts, ", ");
}

}  // namespace chorale
