// What the program knows of its own build: compiler, flags, commit, and which optional libraries were left out and why.
// The Makefile writes these facts.
#pragma once
#include <string>

namespace chorale {

inline constexpr const char* version = "0.1.0";

// compiler, cxxflags, mpirun, git_commit, git_dirty; without_ucx, without_cuda, without_nccl: why it was left out, "" if built in.
std::string built(const std::string& fact);

}  // namespace chorale
