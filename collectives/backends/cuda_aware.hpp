// Whether a library is CUDA-aware, that is, accepts device pointers. The library reports this, unless CHORALE_CUDA_AWARE is
// set:
//
//   CHORALE_CUDA_AWARE=mpi,ucx     both accept device pointers (for libraries that do not report it)
//   CHORALE_CUDA_AWARE=none        neither accepts them (to compare direct transfers with staged copies)
#pragma once
#include <string>

namespace chorale {

bool is_cuda_aware(const std::string& backend, bool says_the_library);
std::string device_buffers_by(bool cuda_aware);  // text for `chorale info`
bool mpi_says_cuda_aware();                      // false before MPI has started

}  // namespace chorale
