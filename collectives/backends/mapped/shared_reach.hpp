// The Reach for processes on one host. Each rank has an arena, which is memory that all other ranks map (shared_reach.cpp).
#pragma once
#include <memory>
#include <string>

#include "collectives/backends/mapped/reach.hpp"
#include "src/base/mpi.hpp"

namespace chorale::mapped {

struct KernelCopies {
  bool work = false;
  std::string detail;  // the system call that works, or the reason why it does not work
};
KernelCopies kernel_copies();  // whether the kernel copies from and to ordinary memory of other processes

std::unique_ptr<Reach> open_shared_reach(const mpi::Runtime& host);  // collective among the ranks of one host

}  // namespace chorale::mapped
