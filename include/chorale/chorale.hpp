// A program that calls the collectives includes only this header, and links one library (`pkg-config chorale`). This header
// includes no headers of other libraries.
//
//   mpi::run_ranks(body)                starts MPI, runs `body`, finalizes MPI; an error on one rank ends all ranks
//   open_world("auto", runtime, clock)  a Communicator of all ranks, on a backend
//   world.all_reduce(slice)             one of the collectives, blocking or nonblocking (communicator.hpp)
//   world.allocator().allocate(…)       a Buffer in memory that peers read directly; a Slice may refer to any memory
//   cuda_memory(0)                      the memory of a GPU, for world.use_device(…)
//
// To write an algorithm of your own (examples/2_own_algorithm.cpp):
//
//   Algorithm                           its name, and a function from Problem to Schedule
//   find_flaw(plan_all_ranks(…))        "" if the algorithm is correct
//   draw_text(plan_all_ranks(…))        each rank's data after each round
//   world.choose(algorithm)             the group now runs this algorithm
//
// Messages make progress only while a rank is inside a call of this library. So call world.barrier() before the ranks wait
// for one another outside this library, for example in MPI_Barrier. Without world.barrier(), a fast rank could wait in
// MPI_Barrier before its last message is completely sent. A slow rank would then wait for the rest of the message.
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
