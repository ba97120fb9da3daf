// Whether a library accepts device pointers ("CUDA-aware"), according to the library or to CHORALE_CUDA_AWARE if it is set:
//
//   CHORALE_CUDA_AWARE=mpi,ucx     both accept device pointers: for libraries that do but do not report it
//   CHORALE_CUDA_AWARE=none        neither does: to compare direct transfers with copies through the host
#pragma once
#include <string>

namespace chorale {

bool is_cuda_aware(const std::string& backend, bool says_the_library);
std::string device_buffers_by(bool cuda_aware);  // text for `chorale info`
bool mpi_says_cuda_aware();                      // false before MPI has started

}  // namespace chorale
