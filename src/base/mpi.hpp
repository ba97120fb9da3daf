// MPI: its start and end, checked calls, communicators that free themselves, and the few collectives that set-up needs
// before ours exist. All calls use PMPI_ names, so that our library can stand in front of any MPI program without calling
// itself.
#pragma once
#define OMPI_SKIP_MPICXX 1  // MPI's C++ bindings, withdrawn in MPI 3
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <source_location>
#include <string>
#include <vector>

#include "src/base/clock.hpp"
#include "src/base/guard/flight.hpp"
#include "src/base/handle.hpp"
#include "src/base/launch.hpp"
#include "src/base/progress_hook.hpp"

namespace chorale::mpi {

void check(int code, std::source_location where = std::source_location::current());

struct CommTraits {
  using type = MPI_Comm;
  static type none() { return MPI_COMM_NULL; }
  static void close(type comm) noexcept { PMPI_Comm_free(&comm); }
};
using Comm = Handle<CommTraits>;

// Initializes and finalizes MPI, unless the host program has already initialized it.
class Life {
 public:
  Life();
  ~Life();
  bool started() const { return started_; }  // false if the program had initialized MPI itself
  Life(const Life&) = delete;
  Life& operator=(const Life&) = delete;

 private:
  bool started_ = false;
};

// Must be the first object in main, so that every other handle dies before MPI_Finalize. If a host program has initialized
// MPI, that program also finalizes it. `world` is a duplicate, so our messages never mix with those of a host program.
class Runtime {
 public:
  explicit Runtime(const Launch& launch = read_launch(process_environment()));
  // The ranks of `whole` that pass the same color, in the order of `whole`. All ranks of `whole` call this; a rank that
  // passes a negative color is in no part and gets rank −1. `whole` must outlive this Runtime.
  Runtime(const Runtime& whole, int color);

  MPI_Comm world() const { return world_.get(); }
  int rank() const { return rank_; }
  int size() const { return size_; }
  Flight* flight() const { return flight_; }  // this rank's flight recorder; null without a guard
  void now(std::string_view what) const {     // notes there what this rank does
    if (flight_) flight_->now(what);
  }
  int launched_rank(int rank) const { return launched_[static_cast<std::size_t>(rank)]; }  // its rank among all ranks

  // Ends all ranks at once. If only this rank ended, the others would wait for it forever.
  [[noreturn]] void abort(int exit_code) const;
  [[noreturn]] void abort(const std::exception& error) const;  // prints the error first

 private:
  void enter(MPI_Comm world);
  void join_guards() const;

  std::unique_ptr<Flight> own_flight_;  // first, because a rank has finished only after MPI
  Flight* flight_ = nullptr;
  std::unique_ptr<ProgressHook> idle_;  // notes in the flight recorder that this rank waits
  Life life_;  // before the others, so that it is destroyed after them, even if the constructor throws
  Comm world_;
  std::vector<int> launched_;
  int rank_ = 0;
  int size_ = 1;
};

// The main function of a program: starts MPI, runs `body` on every rank, ends MPI. The rank that throws prints its error
// and ends all ranks. Returns main's exit code.
int run_ranks(const std::function<void(const Runtime&)>& body);

std::string library_name();  // "Open MPI v4.1.4"

// Blocking helpers for set-up. They wait inside MPI, so MPI decides what happens if a peer dies.
std::vector<int> ranks_where(MPI_Comm comm, bool flag);                  // on every rank: the ranks that passed true
std::vector<std::string> gather(MPI_Comm comm, const std::string&);      // on rank 0: every rank's text, in rank order
std::string broadcast(MPI_Comm comm, std::string text);                  // rank 0's text, on every rank
std::vector<std::int64_t> all_gather(MPI_Comm comm, std::int64_t mine);  // every rank's number, in rank order

// This rank's index among the ranks on its host, and the number of these ranks. Collective.
std::pair<int, int> place_on_host(MPI_Comm comm);

// A barrier that sleeps while it waits and has no deadline. (MPI's own barrier would spin, and wait_until would fail at its
// deadline.)
void sleep_until_all(MPI_Comm comm, Clock& clock);

// Seconds to add to this rank's clock to get rank 0's, from the quickest of many round trips (Cristian 1989).
double clock_offset(MPI_Comm comm, const Clock& clock);

}  // namespace chorale::mpi
