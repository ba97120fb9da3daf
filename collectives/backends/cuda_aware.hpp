// Whether a library accepts device pointers ("CUDA-aware"). The library is asked; CHORALE_CUDA_AWARE overrides its answer.
//
//   CHORALE_CUDA_AWARE=mpi,ucx     both are: for a library that is CUDA-aware and does not report it
//   CHORALE_CUDA_AWARE=none        neither is: to compare direct with staged transfers
#pragma once
#include <string>

namespace chorale {

bool is_cuda_aware(const std::string& backend, bool says_the_library);
std::string device_buffers_by(bool cuda_aware);  // text for `chorale info`
bool mpi_says_cuda_aware();                      // false before MPI has started

}  // namespace chorale
