// Whether MPI or UCX is CUDA-aware, which means that the library accepts device pointers. CHORALE_CUDA_AWARE overrides what
// the libraries report:
//
//   CHORALE_CUDA_AWARE=mpi,ucx     both libraries accept device pointers (even if they do not report it)
//   CHORALE_CUDA_AWARE=none        neither library accepts device pointers (to measure staged copies)
#pragma once
#include <string>

namespace chorale {

bool is_cuda_aware(const std::string& backend, bool says_the_library);
std::string device_buffers_by(bool cuda_aware);  // text for `chorale info`
bool mpi_says_cuda_aware();                      // false before MPI has started

}  // namespace chorale
