#include "src/tier/staged.hpp"

#include "src/tier/file_tier.hpp"

namespace chorale {
namespace {

// If the host computes with a tensor of a device, the copy is in the tier, and the tensor is in memory.
bool is_on_device(const Tensor& there) { return there.device().kind == Device::Kind::cuda; }

}  // namespace

// The tensor begins on a page, so that a file without a cache can be read and written directly.
Staged::Staged(Allocator& memory, std::int64_t count, DType dtype, Category category) : category_(category) {
  const std::int64_t page = FileTier::block / size_of(dtype);
  const Tensor roomy(memory, {count + page}, dtype, category);
  const auto place = reinterpret_cast<std::uintptr_t>(roomy.slice().data);
  const auto before = static_cast<std::int64_t>(-place % FileTier::block);
  tensor_ = roomy.narrow(before / size_of(dtype), count);
}

// The memory of the side that is not the host's makes the copies.
AsyncCopy& Staged::copy_with(const Tensor& there) {
  if (!copy_) copy_ = (there.device().is_host() ? tensor_ : there).slice().memory->async_copy();
  return *copy_;
}

Staged& Staged::operator=(Staged&& other) noexcept {
  std::swap(tensor_, other.tensor_);
  std::swap(category_, other.category_);
  std::swap(copy_, other.copy_);
  return *this;
}

void Staged::start_read(const Tensor& there, TierTraffic& traffic) {
  wait();
  (is_on_device(there) ? traffic.written : traffic.read)[static_cast<std::size_t>(category_)] += there.bytes();
  if (there.phantom()) return;
  if (there.device().is_host())
    copy_with(there).send_in_order(tensor_.slice().data, there.slice().data, there.bytes());
  else
    copy_with(there).fetch(tensor_.slice().data, there.slice().data, there.bytes());
}

void Staged::start_write(const Tensor& there, TierTraffic& traffic) {
  wait();
  (is_on_device(there) ? traffic.read : traffic.written)[static_cast<std::size_t>(category_)] += there.bytes();
  if (there.phantom()) return;
  if (there.device().is_host())
    copy_with(there).fetch(there.slice().data, tensor_.slice().data, there.bytes());
  else
    copy_with(there).send_in_order(there.slice().data, tensor_.slice().data, there.bytes());
}

void Staged::wait() {
  if (copy_) copy_->wait();
}

bool Staged::over() { return !copy_ || copy_->over(); }

}  // namespace chorale
