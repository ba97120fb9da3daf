// A Pack is a vector of up to 16 bytes, the most that a thread can read or write in one instruction. A kernel is written for
// vectors of `width` elements and instantiated twice: for 16-byte vectors, which require suitable alignment and length, and
// for single elements.
//
//   with_packs(Type<T>{}, aligned, [&](auto width) { launch(kernel<T, width()>, …); })
#pragma once
#include "src/math/kernel.hpp"

namespace chorale::cuda {

template <class T, int width>
struct alignas(sizeof(T) * width < 16 ? sizeof(T) * width : 16) Pack {
  T values[width];
};

template <int width, class T>
__device__ Pack<T, width> load(const T* place) {
  return *reinterpret_cast<const Pack<T, width>*>(place);
}
template <int width, class T>
__device__ void store(T* place, const Pack<T, width>& pack) {
  *reinterpret_cast<Pack<T, width>*>(place) = pack;
}

// Whether all pointers are 16-byte aligned. A null pointer counts as aligned.
template <class... Pointers>
bool aligned(const Pointers*... pointers) {
  return (... && (reinterpret_cast<std::uintptr_t>(pointers) % 16 == 0));
}

template <class T, class F>
void with_packs(Type<T>, bool wide, F&& f) {
  if (wide) return f(std::integral_constant<int, 16 / sizeof(T)>{});
  f(std::integral_constant<int, 1>{});
}

}  // namespace chorale::cuda
