// MPI support: initialization and finalization, checked calls, communicators that free themselves, and the few collectives
// that set-up needs before Chorale's collectives exist. All calls use PMPI_ names, so that Chorale can intercept the MPI
// calls of any program without intercepting its own.
#pragma once
#define OMPI_SKIP_MPICXX 1  // leaves out MPI's C++ bindings, which MPI 3 withdrew
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <chorale/run.hpp>
#include <cstdint>
#include <memory>
#include <source_location>
#include <string>
#include <utility>
#include <vector>

#include <chorale/clock.hpp>
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
  bool started() const { return started_; }  // false if the host program had already initialized MPI
  Life(const Life&) = delete;
  Life& operator=(const Life&) = delete;

 private:
  bool started_ = false;
};

// The private members of Runtime (chorale/run.hpp).
struct Runtime::Parts {
  explicit Parts(std::unique_ptr<Flight> own) : own_flight(std::move(own)), flight(own_flight.get()) {}
  explicit Parts(Flight* shared) : flight(shared) {}

  std::unique_ptr<Flight> own_flight;  // first, so that it is destroyed last: a rank has finished only after MPI has been
                                       // finalized
  Flight* flight = nullptr;
  std::unique_ptr<ProgressHook> idle;  // records in the flight recorder that this rank waits
  Life life;  // declared early, so that it is destroyed after the members below, even if the constructor throws
  Comm world;
  std::vector<int> launched;
};
inline auto Runtime::world() const { return parts_->world.get(); }

std::string library_name();  // "Open MPI v4.1.4"

// Blocking helpers for set-up. The helpers poll MPI, so the MPI library handles the death of a peer.
std::vector<int> ranks_where(MPI_Comm comm, bool flag);                  // returns, on every rank, the ranks that passed
                                                                         // true
std::vector<std::string> gather(MPI_Comm comm, const std::string&);      // returns, on rank 0, the strings of all ranks, in
                                                                         // rank order
std::string broadcast(MPI_Comm comm, std::string text);                  // returns the string of rank 0 on every rank
std::vector<std::int64_t> all_gather(MPI_Comm comm, std::int64_t mine);  // returns the numbers of all ranks, in rank order

// Returns this rank's index among the ranks on its host, and the number of these ranks. Collective.
std::pair<int, int> place_on_host(MPI_Comm comm);

// A barrier that sleeps while it waits and has no deadline. MPI's own barrier would spin, and wait_until would fail at its
// deadline.
void sleep_until_all(MPI_Comm comm, Clock& clock);

// Returns the offset in seconds that must be added to this rank's clock to get the clock of rank 0. Uses the fastest of many
// round trips (Cristian 1989).
double clock_offset(MPI_Comm comm, const Clock& clock);

}  // namespace chorale::mpi
