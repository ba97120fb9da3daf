// Facts about this build, written by the Makefile: compiler, flags, commit, and why optional libraries were left out.
#pragma once
#include <string>

namespace chorale {

inline constexpr const char* version = "0.2.0";

// Facts: compiler, cxxflags, mpirun, git_commit, git_dirty. without_ucx, without_cuda and without_nccl say why a library
// was left out; "" means it is built in.
std::string built(const std::string& fact);

}  // namespace chorale
