// MPI for the house: the runtime's life, checked calls, communicators that free themselves, and the few collectives that
// set-up needs before there are collectives of our own. PMPI_ names throughout, so that our own library can one day
// stand in front of any MPI program without calling itself.
#pragma once
#define OMPI_SKIP_MPICXX 1  // MPI's C++ bindings, withdrawn in MPI 3
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <cstdint>
#include <functional>
#include <source_location>
#include <string>
#include <vector>

#include "src/base/clock.hpp"
#include "src/base/handle.hpp"
#include "src/base/launch.hpp"

namespace chorale::mpi {

void check(int code, std::source_location where = std::source_location::current());

struct CommTraits {
  using type = MPI_Comm;
  static type none() { return MPI_COMM_NULL; }
  static void close(type comm) noexcept { PMPI_Comm_free(&comm); }
};
using Comm = Handle<CommTraits>;

// MPI from its initialisation to its end, if both are ours.
class Life {
 public:
  Life();
  ~Life();
  Life(const Life&) = delete;
  Life& operator=(const Life&) = delete;

 private:
  bool started_ = false;
};

// The first object in main, so that every other handle dies before MPI does. An MPI that is already initialised is
// adopted, and then not finalised either. `world` is a duplicate: our traffic never meets that of a host program.
class Runtime {
 public:
  explicit Runtime(const Launch& launch = read_launch(process_environment()));
  // A world of the first `ranks` of another's, which outlives it. Every rank of the other calls it; those left out get a rank of −1.
  Runtime(const Runtime& whole, int ranks);

  MPI_Comm world() const { return world_.get(); }
  int rank() const { return rank_; }
  int size() const { return size_; }

  // Ends every rank at once: a rank that left quietly would hang the others.
  [[noreturn]] void abort(int exit_code) const;
  [[noreturn]] void abort(const std::exception& error) const;  // says it first

 private:
  void enter(MPI_Comm world);

  Life life_;  // first, so that it ends last, also when the constructor throws
  Comm world_;
  int rank_ = 0;
  int size_ = 1;
};

// The main of a program of one's own: MPI's life around `body`, on every rank. An error is said by the rank it happened on, which
// then ends all. Gives main's exit code.
int run_ranks(const std::function<void(const Runtime&)>& body);

std::string library_name();  // "Open MPI v4.1.4"

// Blocking helpers for set-up; both wait inside MPI, whose failure behaviour they share.
std::vector<int> ranks_where(MPI_Comm comm, bool flag);                  // on every rank: who passed true
std::vector<std::string> gather(MPI_Comm comm, const std::string&);      // on rank 0: every rank's text, in rank order
std::string broadcast(MPI_Comm comm, std::string text);                  // rank 0's text, on every rank
std::vector<std::int64_t> all_gather(MPI_Comm comm, std::int64_t mine);  // everybody's number, in rank order

// This rank's number among the ranks of its host, and how many they are. Collective.
std::pair<int, int> place_on_host(MPI_Comm comm);

// Comes back when all ranks are here, however long that takes, and leaves the cores to those that still work: MPI's own barrier spins, and
// our waits have a deadline.
void sleep_until_all(MPI_Comm comm, Clock& clock);

// Seconds to add to this rank's clock to read rank 0's, by the round trip that was quickest of many (Cristian 1989).
double clock_offset(MPI_Comm comm, const Clock& clock);

}  // namespace chorale::mpi
