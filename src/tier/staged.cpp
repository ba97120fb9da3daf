#include "src/tier/staged.hpp"

#include "src/tier/file_tier.hpp"

namespace chorale {

// The tensor starts at a page boundary, so that a file opened with O_DIRECT can be transferred directly to and from it.
Staged::Staged(Allocator& memory, std::int64_t count, DType dtype, Category category) : category_(category) {
  const std::int64_t page = FileTier::block / size_of(dtype);
  const Tensor roomy(memory, {count + page}, dtype, category);
  const auto place = reinterpret_cast<std::uintptr_t>(roomy.slice().data);
  const auto before = static_cast<std::int64_t>(-place % FileTier::block);
  tensor_ = roomy.narrow(before / size_of(dtype), count);
}

// The tensor that is not in host memory provides the object that does the copies.
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

void Staged::start(bool reads, const Tensor& there, TierTraffic& traffic) {
  wait();
  // If `there` is on a device, its memory counts as the fast memory, and this copy on the host counts as the tier.
  const bool on_device = there.device().kind == Device::Kind::cuda;
  (reads != on_device ? traffic.read : traffic.written)[static_cast<std::size_t>(category_)] += there.bytes();
  void* const from = there.phantom() ? nullptr : (reads ? there : tensor_).slice().data;
  void* const to = there.phantom() ? nullptr : (reads ? tensor_ : there).slice().data;
  if (reads == there.device().is_host())
    copy_with(there).send_in_order(to, from, there.bytes());
  else
    copy_with(there).fetch(to, from, there.bytes());
}

void Staged::wait() {
  if (copy_) copy_->wait();
}

bool Staged::over() { return !copy_ || copy_->over(); }

}  // namespace chorale
