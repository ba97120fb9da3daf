#include "src/tier/staged.hpp"

#include "src/tier/file_tier.hpp"

namespace chorale {

// The tensor begins on a page, so that a file without a cache can be read and written directly.
Staged::Staged(Allocator& memory, std::int64_t count, DType dtype, Category category) : category_(category) {
  const std::int64_t page = FileTier::block / size_of(dtype);
  const Tensor roomy(memory, {count + page}, dtype, category);
  const auto place = reinterpret_cast<std::uintptr_t>(roomy.slice().data);
  const auto before = static_cast<std::int64_t>(-place % FileTier::block);
  tensor_ = roomy.narrow(before / size_of(dtype), count);
}

void Staged::start_read(const Tensor& there, TierTraffic& traffic) {
  wait();
  traffic.read[static_cast<std::size_t>(category_)] += there.bytes();
  if (there.phantom()) return;
  if (!copy_) copy_ = there.slice().memory->async_copy();
  copy_->fetch(tensor_.slice().data, there.slice().data, there.bytes());
}

void Staged::start_write(const Tensor& there, TierTraffic& traffic) {
  wait();
  traffic.written[static_cast<std::size_t>(category_)] += there.bytes();
  if (there.phantom()) return;
  if (!copy_) copy_ = there.slice().memory->async_copy();
  copy_->send(there.slice().data, tensor_.slice().data, there.bytes());
}

void Staged::wait() {
  if (copy_) copy_->wait();
}

bool Staged::over() { return !copy_ || copy_->over(); }

}  // namespace chorale
