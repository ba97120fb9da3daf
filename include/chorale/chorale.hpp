// Everything a program needs to call the collectives: one include and one library (`pkg-config chorale`). No
// header of another library is included.
//
//   mpi::run_ranks(body)                starts MPI, runs `body`, finalizes MPI; an error on one rank ends all ranks
//   open_world("auto", runtime, clock)  a Communicator of all ranks, on a backend
//   world.all_reduce(slice)             and the other collectives, blocking or nonblocking: communicator.hpp
//   world.allocator().allocate(…)       a Buffer in memory that peers read directly; a Slice names elements of any memory
//   cuda_memory(0)                      the memory of a GPU, for world.use_device(…)
//
// To write an algorithm of your own (examples/2_own_algorithm.cpp):
//
//   Algorithm                           its name, and a function from Problem to Schedule
//   find_flaw(plan_all_ranks(…))        "" if the algorithm is proved
//   draw_text(plan_all_ranks(…))        what every rank holds after every round
//   world.choose(algorithm)             makes the group run it
//
// Messages make progress only while a rank is inside a call of this library. So call world.barrier() before ranks wait for
// one another by other means, such as MPI_Barrier. Otherwise a rank may wait in MPI_Barrier while a slower rank still needs
// the rest of a message from the waiting rank.
#pragma once
#include <chorale/algorithm.hpp>
#include <chorale/buffer.hpp>
#include <chorale/clock.hpp>
#include <chorale/communicator.hpp>
#include <chorale/element.hpp>
#include <chorale/error.hpp>
#include <chorale/ledger.hpp>
#include <chorale/named.hpp>
#include <chorale/problem.hpp>
#include <chorale/run.hpp>
#include <chorale/schedule.hpp>
