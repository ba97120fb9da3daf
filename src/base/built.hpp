// Facts about this build, written by the Makefile: compiler, flags, commit, and why optional libraries were left out.
#pragma once
#include <string>

namespace chorale {

inline constexpr const char* version = "0.3.0";

// `fact` is compiler, cxxflags, mpirun, git_commit, git_dirty, without_ucx, without_cuda or without_nccl. The last three
// facts state why a library was left out; "" means that the library is built in.
std::string built(const std::string& fact);

}  // namespace chorale
