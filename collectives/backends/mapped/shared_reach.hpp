// The Reach of processes on one host: each rank has an arena, which is memory that all other ranks map (shared_reach.cpp).
#pragma once
#include <memory>
#include <string>

#include "collectives/backends/mapped/reach.hpp"
#include "src/base/mpi.hpp"

namespace chorale::mapped {

struct DirectReads {
  bool work = false;
  std::string detail;  // the system call that works, or why it does not
};
DirectReads direct_reads();  // whether ordinary memory of other processes can be read

std::unique_ptr<Reach> open_shared_reach(const mpi::Runtime& host);  // collective among the ranks of one host

}  // namespace chorale::mapped
