// If the receiver is slow and the socket is full, a send can complete while the MPI library or UCX still holds part of the
// data. The sender's next wait must therefore let this library make progress, even if the wait is for something else.
// Otherwise the receiver would wait forever.
//
//   rank 0   sends ───────────────────▶ over      waits for all ranks over MPI: UCX must make progress too
//   rank 1             comes late, receives …     waits for all ranks
#include "tests/collectives/worlds.hpp"

namespace chorale::test {
namespace {

// Each round sends one message more than the previous round. So in some round, the socket accepts only part of the last
// message.
std::string reaches_a_late_rank(Communicator& c) {
  constexpr std::int64_t count = 1500;
  constexpr int rounds = 100;
  SystemClock clock;
  std::string trouble;
  for (int messages = 1; messages <= rounds; ++messages) {
    std::vector<float> x(count, static_cast<float>(c.rank() == 0 ? messages : 0));
    const Slice slice{x.data(), count, DType::f32};
    if (c.rank() == 0 && c.size() > 1)
      for (int m = 0; m < messages; ++m) c.start_send(slice, 1).wait();
    if (c.rank() == 1) {
      clock.sleep(0.02);
      for (int m = 0; m < messages; ++m) c.start_recv(slice, 0).wait();
      if (x != std::vector<float>(count, static_cast<float>(messages))) trouble = "wrong values arrived";
    }
    mpi::sleep_until_all(world().world(), clock);
  }
  return trouble;
}

constexpr Check residue_checks[] = {{"messages to a rank that is late", reaches_a_late_rank}};

}  // namespace

TEST_CASE("a message reaches a late rank while the message's sender waits for something else", "[spmd]") {
  if (world().size() > 2 && only_in_test_all("only ranks 0 and 1 send and receive, as under mpirun on 2 ranks")) return;
  on_every_backend(residue_checks);
}

}  // namespace chorale::test
