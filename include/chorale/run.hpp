// A program's start: run_ranks starts MPI, runs your function on every rank, and ends MPI. Not yet stable: a way to start
// without MPI will come.
//
//   int main() { return mpi::run_ranks([](const mpi::Runtime& runtime) { … }); }
#pragma once
#include <exception>
#include <functional>
#include <memory>
#include <string_view>

namespace chorale {

class Flight;
struct Launch;

}  // namespace chorale

namespace chorale::mpi {

// This process as a rank of MPI. It must be the first object in main, so that everything else is destroyed before MPI is
// finalized; run_ranks sees to that. A program may also initialize MPI itself, at least with MPI_THREAD_FUNNELED. Then it
// must also finalize MPI itself. Messages of the library never mix with the program's own.
class Runtime {
 public:
  Runtime();
  explicit Runtime(const Launch& launch);
  // The ranks of `whole` that pass the same color, in the order of `whole`. All ranks of `whole` call this; a rank that
  // passes a negative color belongs to no part and gets rank −1. `whole` must outlive this Runtime.
  Runtime(const Runtime& whole, int color);
  ~Runtime();

  int rank() const { return rank_; }
  int size() const { return size_; }
  int launched_rank(int rank) const;      // the number of `rank` among all launched ranks
  Flight* flight() const;                 // this rank's flight recorder; null without a guard
  void now(std::string_view what) const;  // records there what this rank is doing

  // Ends all ranks at once. If only this rank ended, the others would wait for it forever.
  [[noreturn]] void abort(int exit_code) const;
  [[noreturn]] void abort(const std::exception& error) const;  // prints the error first

  // For the library itself: a duplicate of MPI_COMM_WORLD, or a part of it. It returns a type of MPI, so it is defined in
  // src/base/mpi.hpp, which includes <mpi.h>.
  auto world() const;

 private:
  struct Parts;
  void enter();
  void join_guards() const;
  std::unique_ptr<Parts> parts_;
  int rank_ = 0;
  int size_ = 1;
};

// The main function of a program: starts MPI, runs `body` on every rank, ends MPI. The rank that throws prints its error
// and ends all ranks. Returns main's exit code.
int run_ranks(const std::function<void(const Runtime&)>& body);

}  // namespace chorale::mpi
