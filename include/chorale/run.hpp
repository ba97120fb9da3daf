// run_ranks starts MPI, calls your function on every rank, and finalizes MPI. run_ranks is not yet stable: a later version
// will also start programs without MPI.
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

// A Runtime represents this process as an MPI rank. A Runtime must be the first object in main, so that everything else is
// destroyed before MPI is finalized. run_ranks ensures this order of destruction. A program that initializes MPI itself must
// use at least MPI_THREAD_FUNNELED, and must also finalize MPI itself. Chorale's messages are never matched with the
// program's messages.
class Runtime {
 public:
  Runtime();
  explicit Runtime(const Launch& launch);
  // Creates a Runtime for the ranks of `whole` that pass the same color, in the rank order of `whole`. All ranks of `whole`
  // must call this constructor. A rank that passes a negative color belongs to no group, and its new Runtime has rank −1.
  // `whole` must outlive this Runtime.
  Runtime(const Runtime& whole, int color);
  ~Runtime();

  int rank() const { return rank_; }
  int size() const { return size_; }
  int launched_rank(int rank) const;      // converts `rank` to its number among all launched ranks
  Flight* flight() const;                 // this rank's flight recorder; null if no guard process watches this rank
  void now(std::string_view what) const;  // records this rank's activity in the flight recorder

  // Ends all ranks immediately. If only this rank ended, the other ranks would wait for this rank forever.
  [[noreturn]] void abort(int exit_code) const;
  [[noreturn]] void abort(const std::exception& error) const;  // prints the error first

  // Used by Chorale itself. Returns a duplicate of MPI_COMM_WORLD, or a communicator of some of its ranks. The return type
  // is an MPI type, so the function is defined in src/base/mpi.hpp, which includes <mpi.h>.
  auto world() const;

 private:
  struct Parts;
  void enter();
  void join_guards() const;
  std::unique_ptr<Parts> parts_;
  int rank_ = 0;
  int size_ = 1;
};

// Starts MPI, runs `body` on every rank, and finalizes MPI. If `body` throws on a rank, that rank prints the error and ends
// all ranks. Returns the exit code for main.
int run_ranks(const std::function<void(const Runtime&)>& body);

}  // namespace chorale::mpi
