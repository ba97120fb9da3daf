// Facts about this build, written by the Makefile: compiler, flags, commit, and why optional libraries were left out.
#pragma once
#include <string>

namespace chorale {

inline constexpr const char* version = "0.3.0";

// The facts are compiler, cxxflags, mpirun, git_commit and git_dirty. The values of without_ucx, without_cuda and
// without_nccl say why a library was left out; "" means that the library is built in.
std::string built(const std::string& fact);

}  // namespace chorale
