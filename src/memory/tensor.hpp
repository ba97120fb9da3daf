// A Tensor is a type and a shape over shared storage. A Tensor is always contiguous (row-major, the last dimension is the
// fastest). Copying a Tensor copies the view, not the bytes. A phantom tensor has a shape and a size but no storage; reading
// its values is an error.
//
//   Tensor x(allocator, {batch, width}, DType::f32, Category::activations);
//   x.narrow(1, 2)         rows 1 and 2            x.view({batch * width})   another shape, the same bytes
#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "src/base/error.hpp"
#include "src/memory/buffer.hpp"

namespace chorale {

using Shape = std::vector<std::int64_t>;
std::string to_string(const Shape& shape);     // "[2, 3]"
std::int64_t elements_of(const Shape& shape);  // the product; 1 for a scalar; throws on overflow

class Tensor {
 public:
  Tensor() = default;
  Tensor(Allocator& allocator, Shape shape, DType dtype, Category category);

  const Shape& shape() const { return shape_; }
  std::int64_t dim(std::size_t i) const;
  std::int64_t count() const { return count_; }
  std::int64_t bytes() const { return count_ * size_of(dtype_); }
  DType dtype() const { return dtype_; }
  Device device() const { return storage_ ? storage_->device() : Device{}; }
  bool phantom() const { return storage_ && storage_->phantom(); }
  explicit operator bool() const { return storage_ != nullptr; }
  // Identifies the storage. All views of one tensor have the same storage, even if it is a phantom.
  const void* storage() const { return storage_.get(); }
  // Sets the category of the storage, and thus of all views of this storage.
  void count_as(Category category) const { storage_->count_as(category); }

  Tensor narrow(std::int64_t first, std::int64_t length) const;  // along dim 0, so that the result is contiguous
  Tensor view(Shape shape) const;                                // one dim may be -1, and is then inferred from the other
                                                                 // dims
  Tensor as(DType dtype) const;                                  // the same bytes as a flat tensor of a different type
  Slice slice() const;                                           // data is nullptr if phantom

  template <class T>
  std::span<T> values() const {
    require(dtype_of<T>() == dtype_, "a {} tensor was read as {}", name_of(dtype_), name_of(dtype_of<T>()));
    require_values();
    return {static_cast<T*>(slice().data), static_cast<std::size_t>(count_)};
  }

 private:
  void require_values() const;
  std::shared_ptr<Buffer> storage_;
  std::int64_t offset_ = 0;  // bytes
  std::int64_t count_ = 0;
  Shape shape_;
  DType dtype_ = DType::f32;
};

void clear(const Tensor& tensor);               // writes zeros; does nothing to a phantom tensor
void copy(const Slice& from, const Slice& to);  // both slices are on the same device

}  // namespace chorale
