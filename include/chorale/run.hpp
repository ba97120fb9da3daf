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
// finalized; run_ranks sees to that. If the program has initialized MPI itself, with thread support, it also finalizes it.
// Messages of the library never mix with the program's own.
class Runtime {
 public:
  Runtime();
  explicit Runtime(const Launch& launch);
  // The ranks of `whole` that pass the same color, in the order of `whole`. All ranks of `whole` call this; a rank that
  // passes a negative color is in no part and gets rank −1. `whole` must outlive this Runtime.
  Runtime(const Runtime& whole, int color);
  ~Runtime();

  int rank() const { return rank_; }
  int size() const { return size_; }
  int launched_rank(int rank) const;      // its rank among all ranks
  Flight* flight() const;                 // this rank's flight recorder; null without a guard
  void now(std::string_view what) const;  // notes there what this rank does

  // Ends all ranks at once. If only this rank ended, the others would wait for it forever.
  [[noreturn]] void abort(int exit_code) const;
  [[noreturn]] void abort(const std::exception& error) const;  // prints the error first

  // For the library itself: a duplicate of MPI_COMM_WORLD, or a part of it. The type is MPI's, so the definition is where
  // <mpi.h> is included: src/base/mpi.hpp.
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
