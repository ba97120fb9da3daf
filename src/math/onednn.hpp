// A thin layer over oneDNN that hides the differences between versions 2 (Debian 12) and 3 (Debian 13). Only .cpp files
// include this header. No other header of Chorale mentions oneDNN.
#pragma once
#include <oneapi/dnnl/dnnl.hpp>
#include <string>

#ifdef _OPENMP
#include <omp.h>
#endif

#include <chorale/element.hpp>

namespace chorale::onednn {

inline std::string version() {
  const dnnl_version_t* v = dnnl_version();
  return std::to_string(v->major) + "." + std::to_string(v->minor) + "." + std::to_string(v->patch);
}

inline dnnl::memory::data_type type_of(DType dtype) {
  using Type = dnnl::memory::data_type;
  return dtype == DType::f32 ? Type::f32 : dtype == DType::bf16 ? Type::bf16 : dtype == DType::f16 ? Type::f16 : Type::undef;
}

// An empty `bias` means that there is no bias. Throws dnnl::error if this machine does not support the product.
inline dnnl::matmul::primitive_desc matmul(const dnnl::engine& engine, const dnnl::memory::desc& source,
                                           const dnnl::memory::desc& weights, const dnnl::memory::desc& bias,
                                           const dnnl::memory::desc& result, const dnnl::primitive_attr& attributes) {
#if DNNL_VERSION_MAJOR >= 3
  return {engine, source, weights, bias, result, attributes};
#else
  return {{source, weights, bias, result}, attributes, engine};
#endif
}

// While a Threads object exists, oneDNN calls from this thread use `threads` OpenMP threads. The destructor restores the
// previous number of threads.
class Threads {
 public:
#ifdef _OPENMP
  explicit Threads(int threads) : before_(omp_get_max_threads()) { omp_set_num_threads(threads); }
  ~Threads() { omp_set_num_threads(before_); }
#else
  explicit Threads(int) {}
#endif
  Threads(const Threads&) = delete;

 private:
  [[maybe_unused]] int before_ = 0;
};

}  // namespace chorale::onednn
