#include <chorale/element.hpp>

namespace chorale {

std::int64_t size_of(DType dtype) {
  return visit(dtype, []<class T>(Type<T>) { return static_cast<std::int64_t>(sizeof(T)); });
}

bool is_floating(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f64 || dtype == DType::f16 || dtype == DType::bf16;
}

}  // namespace chorale
