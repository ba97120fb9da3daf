// Whether a library takes pointers to a device's memory itself ("CUDA-aware"): it is asked, and CHORALE_CUDA_AWARE has the last word.
//
//   CHORALE_CUDA_AWARE=mpi,ucx     both do: for one that does and does not say so
//   CHORALE_CUDA_AWARE=none        neither: to compare direct with staged
#pragma once
#include <string>

namespace chorale {

bool is_cuda_aware(const std::string& backend, bool says_the_library);
std::string device_buffers_by(bool cuda_aware);  // in words, for `chorale info`
bool mpi_says_cuda_aware();                      // once MPI has started

}  // namespace chorale
