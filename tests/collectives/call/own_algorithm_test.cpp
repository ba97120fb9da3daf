// Tests a user's algorithm, which is not in the table of algorithms. Once a group has chosen this algorithm, the group and
// all groups split from it run the algorithm. The group can later choose a different algorithm.
#include <atomic>

#include <chorale/algorithm.hpp>
#include "tests/catch.hpp"
#include "tests/collectives/worlds.hpp"

namespace chorale {
namespace {

std::atomic<int> planned = 0;

// All ranks send to rank 0, which adds the vectors and sends the sum back.
Schedule star(const Problem& p) {
  ++planned;
  const std::int64_t n = p.blocks.total();
  Schedule s(p);
  if (p.size == 1) s.copy(input(0, n), output(0, n));
  for (int peer = 1; peer < p.size; ++peer) {
    if (p.rank == 0) s.recv_reduce(peer, peer == 1 ? input(0, n) : output(0, n), output(0, n));
    if (p.rank == peer) s.send(0, input(0, n));
  }
  for (int peer = 1; peer < p.size; ++peer) {
    if (p.rank == 0) s.send(peer, output(0, n));
    if (p.rank == peer) s.recv(0, output(0, n));
  }
  return s;
}
const Algorithm mine{Collective::all_reduce, "star", star, "by way of rank 0"};

// Sums `1 + rank` over the group. If `ours` is true, star() must have planned the call; otherwise star() must not have
// planned it.
std::string sums_by(Communicator& group, bool ours) {
  group.barrier();
  const int before = planned;
  group.barrier();  // all ranks read `planned` before any rank plans the next call
  std::vector<std::int64_t> x(10, 1 + group.rank());
  const Slice slice{x.data(), 10, DType::i64};
  const std::string name = group.choice({Collective::all_reduce, slice, slice}).algorithm;
  group.all_reduce(slice);
  group.barrier();
  if (x != std::vector<std::int64_t>(10, group.size() * (group.size() + 1) / 2)) return "a wrong sum by " + name;
  if ((name == "star") != ours) return "chose " + name;
  return (planned > before) == ours ? "" : name + (ours ? " was not planned" : " was chosen, but star was planned");
}

std::string is_run(Communicator& world) {
  world.choose(mine);
  std::string trouble = sums_by(world, true);
  Communicator part = world.split(0, 0);
  trouble += sums_by(part, true);
  world.choose(Collective::all_reduce, "ring");
  trouble += sums_by(world, false);
  world.choose(mine, 2);  // with two chunks
  trouble += sums_by(world, true);
  world.choose("auto");
  return trouble + sums_by(world, false);
}

const test::Check own_algorithm_checks[] = {{"an algorithm of one's own", is_run}};

TEST_CASE("a group runs an algorithm that is in no table", "[threads]") {
  test::on_thread_worlds(own_algorithm_checks, {1, 2, 3, 5});
}

}  // namespace
}  // namespace chorale
