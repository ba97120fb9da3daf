#include "src/memory/tensor.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace chorale {

std::string to_string(const Shape& shape) { return fmt::format("{}", shape); }

std::int64_t elements_of(const Shape& shape) {
  std::int64_t product = 1;
  for (const std::int64_t dim : shape) {
    require(dim >= 0, "the dim {} in the shape {} is negative", dim, shape);
    require(!__builtin_mul_overflow(product, dim, &product), "the shape {} has more than 2^63 − 1 elements", shape);
  }
  return product;
}

Tensor::Tensor(Allocator& allocator, Shape shape, DType dtype, Category category)
    : count_(elements_of(shape)), shape_(std::move(shape)), dtype_(dtype) {
  std::int64_t bytes = 0;
  require(!__builtin_mul_overflow(count_, size_of(dtype), &bytes), "the shape {} of {} has more than 2^63 − 1 bytes", shape_,
          name_of(dtype));
  storage_ = std::make_shared<Buffer>(allocator.allocate(bytes, category));
}

std::int64_t Tensor::dim(std::size_t i) const {
  require(i < shape_.size(), "dim {} does not exist in the shape {}", i, shape_);
  return shape_[i];
}

Tensor Tensor::narrow(std::int64_t first, std::int64_t length) const {
  require(!shape_.empty(), "a scalar has no rows to narrow");
  require(first >= 0 && length >= 0 && length <= shape_[0] && first <= shape_[0] - length,
          "{} rows from row {} exceed the shape {}", length, first, shape_);
  Tensor part = *this;
  const std::int64_t row = shape_[0] ? count_ / shape_[0] : 0;
  part.shape_[0] = length;
  part.count_ = row * length;
  part.offset_ += first * row * size_of(dtype_);
  return part;
}

Tensor Tensor::view(Shape shape) const {
  const auto inferred = std::find(shape.begin(), shape.end(), -1);
  if (inferred != shape.end()) {
    *inferred = 1;
    const std::int64_t rest = elements_of(shape);
    require(rest > 0 && count_ % rest == 0, "the shape {} cannot be viewed in rows of {}", shape_, rest);
    *inferred = count_ / rest;
  }
  require(elements_of(shape) == count_, "the shape {} has {} elements, its view {} would have {}", shape_, count_, shape,
          elements_of(shape));
  Tensor other = *this;
  other.shape_ = std::move(shape);
  return other;
}

Tensor Tensor::as(DType dtype) const {
  require(bytes() % size_of(dtype) == 0, "{} bytes are not a multiple of the size of {}", bytes(), name_of(dtype));
  Tensor other = *this;
  other.count_ = bytes() / size_of(dtype);
  other.shape_ = {other.count_};
  other.dtype_ = dtype;
  return other;
}

Slice Tensor::slice() const {
  require(bool(*this), "an empty tensor has no slice");
  auto* base = static_cast<std::byte*>(storage_->data());
  return {base ? base + offset_ : nullptr, count_, dtype_, device(), storage_->memory()};
}

void Tensor::require_values() const {
  require(!phantom(), "a phantom tensor of shape {} has no values to read", shape_);
  require(device().is_host(), "the values of a tensor on {} cannot be read on the host", name_of(device()));
}

void clear(const Tensor& tensor) {
  const Slice all = tensor.slice();
  if (all.data) all.memory->clear(all.data, all.bytes());
}

void copy(const Slice& from, const Slice& to) {
  require(from.bytes() == to.bytes() && from.device == to.device, "{} bytes on {} cannot be copied to {} bytes on {}",
          from.bytes(), name_of(from.device), to.bytes(), name_of(to.device));
  if (to.data && to.data != from.data) to.memory->copy(to.data, from.data, to.bytes());
}

}  // namespace chorale
