// Tells ThreadSanitizer which tensors a kernel reads and writes. The innermost loops of products, attention and exact sums
// are compiled without ThreadSanitizer (`loops` in the Makefile), because it would make the tests several times slower.
// oneDNN is never compiled with ThreadSanitizer. Therefore the callers of these loops and of oneDNN mark complete tensors
// once per call. Without ThreadSanitizer, mark_accesses does nothing.
#pragma once
#include <initializer_list>

#include "src/memory/tensor.hpp"

#ifdef WITH_THREAD_SANITIZER
extern "C" void __tsan_read_range(void* first, unsigned long bytes);
extern "C" void __tsan_write_range(void* first, unsigned long bytes);
#endif

namespace chorale {

// Null pointers and empty tensors are ignored.
inline void mark_accesses([[maybe_unused]] std::initializer_list<const Tensor*> reads,
                          [[maybe_unused]] std::initializer_list<const Tensor*> writes) {
#ifdef WITH_THREAD_SANITIZER
  for (const Tensor* x : reads)
    if (x && *x && x->bytes() > 0) __tsan_read_range(x->slice().data, static_cast<unsigned long>(x->bytes()));
  for (const Tensor* x : writes)
    if (x && *x && x->bytes() > 0) __tsan_write_range(x->slice().data, static_cast<unsigned long>(x->bytes()));
#endif
}

}  // namespace chorale
