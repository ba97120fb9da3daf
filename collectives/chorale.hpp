// All that a program of one's own needs to call the collectives: one include, and one library (`pkg-config chorale`). Installed, and for
// programs built against this folder, it is <chorale/chorale.hpp>.
//
//   mpi::run_ranks(body)                MPI's life around `body`; an error on one rank is said, and ends all
//   open_world("auto", runtime, clock)  a Communicator of all ranks, on a backend
//   world.all_reduce(slice)             and the others, blocking or started: collectives/communicator.hpp
//   world.allocator().allocate(…)       a Buffer of memory that peers read directly; a Slice names elements of any memory
//   cuda_memory(plugin, 0)              who copies buffers on a device, for world.use_device(…)
//
// and to write an algorithm of your own: examples/2_own_algorithm.cpp
//
//   Algorithm                           a function from Problem to Schedule, and its name
//   find_flaw(plan_all_ranks(…))        "" where it is proved
//   draw_text(plan_all_ranks(…))        what every rank holds after every round
//   world.choose(algorithm)             the group's calls run it
//
// Messages move only while a rank is inside a call of this library. Before ranks wait for one another by other means, such as MPI_Barrier,
// call world.barrier(): a rank that is late may still need the end of a message that its sender counts as sent.
#pragma once
#include "collectives/algorithms.hpp"
#include "collectives/analysis/checker.hpp"
#include "collectives/analysis/drawing.hpp"
#include "collectives/communicator.hpp"
#include "src/base/clock.hpp"
#include "src/base/error.hpp"
#include "src/base/mpi.hpp"
#include "src/memory/buffer.hpp"
#include "src/memory/device_plugin.hpp"
