// Everything a program needs to call the collectives: one include and one library (`pkg-config chorale`). The installed
// header is <chorale/chorale.hpp>; programs built against this folder use the same name.
//
//   mpi::run_ranks(body)                starts MPI, runs `body`, finalizes MPI; an error on one rank ends all ranks
//   open_world("auto", runtime, clock)  a Communicator of all ranks, on a backend
//   world.all_reduce(slice)             and the other collectives, blocking or started: collectives/call/communicator.hpp
//   world.allocator().allocate(…)       a Buffer in memory that peers read directly; a Slice names elements of any memory
//   cuda_memory(plugin, 0)              the memory of a GPU, for world.use_device(…)
//
// To write an algorithm of your own (examples/2_own_algorithm.cpp):
//
//   Algorithm                           its name, and a function from Problem to Schedule
//   find_flaw(plan_all_ranks(…))        "" if the algorithm is proved
//   draw_text(plan_all_ranks(…))        what every rank holds after every round
//   world.choose(algorithm)             makes the group run it
//
// Messages move only while a rank is inside a call of this library. So call world.barrier() before ranks wait for one
// another by other means, such as MPI_Barrier. Otherwise a rank may wait in MPI_Barrier while a slower rank still needs the
// rest of a message from the waiting rank.
#pragma once
#include "collectives/analysis/checker.hpp"
#include "collectives/analysis/drawing.hpp"
#include "collectives/call/communicator.hpp"
#include "collectives/schedule/algorithms.hpp"
#include "src/base/clock.hpp"
#include "src/base/error.hpp"
#include "src/base/mpi.hpp"
#include "src/memory/buffer.hpp"
#include "src/memory/device_plugin.hpp"
