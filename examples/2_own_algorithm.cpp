// 2. Defines, proves, draws and runs a new all-reduce algorithm. An algorithm is a function from a problem to a schedule. A
// schedule is plain data, so the same schedule can be proved, drawn and executed.
//
//   mpirun -np 4 ./2_own_algorithm shm
#include <algorithm>
#include <chorale/chorale.hpp>
#include <cstdio>

using namespace chorale;

// Step 1: define the algorithm. Partial sums are sent up the line of ranks to the last rank. The result is sent back down.
//
//   ranks  0 ──▶ 1 ──▶ 2 ──▶ 3        up: add my vector, send on     p ranks: 2(p − 1) rounds; inner ranks send twice
//          0 ◀── 1 ◀── 2 ◀── 3        down: keep the sum, send on
//
// The schedule lists the steps of one rank. The library derives the dependencies between steps from the data that the steps
// read and write.
Schedule line(const Problem& p) {
  const std::int64_t n = p.blocks.total();
  const int last = p.size - 1;
  Schedule s(p);
  if (p.size == 1) s.copy(input(0, n), output(0, n));
  for (int k = 0; k < last; ++k, s.round()) {  // up: rank k sends to rank k + 1
    if (p.rank == k) s.send(k + 1, k == 0 ? input(0, n) : output(0, n));
    if (p.rank == k + 1) s.recv_reduce(k, input(0, n), output(0, n));
  }
  for (int k = last; k > 0; --k, s.round()) {  // down: rank k sends to rank k − 1
    if (p.rank == k) s.send(k - 1, output(0, n));
    if (p.rank == k - 1) s.recv(k, output(0, n));
  }
  return s;
}

const Algorithm mine{Collective::all_reduce, "line", line, "up the line of ranks, and back down"};

int main(int argc, char** argv) {
  return mpi::run_ranks([&](const mpi::Runtime& runtime) {
    SystemClock clock;
    Communicator world = open_world(argc > 1 ? argv[1] : "shm", runtime, clock);
    const bool speaks = world.rank() == 0;

    // Step 2: prove the algorithm for 1 to 16 ranks, in place and out of place. The proof executes the schedules of all
    // ranks on symbols, without MPI.
    for (int ranks = 1; ranks <= 16; ++ranks)
      for (const bool in_place : {false, true})
        if (const std::string flaw = find_flaw(plan_all_ranks(mine, Problem::even(mine.what, 100, ranks, 0, in_place)));
            !flaw.empty())
          throw Error(Exit::check, "the algorithm is wrong", flaw, "mend the schedule");
    if (speaks) std::printf("proved for 1 to 16 ranks\n\n");

    // Step 3: draw the algorithm. The drawn schedules are for a vector with one element per rank. The schedules of step 4
    // have the same structure.
    const auto schedules = plan_all_ranks(mine, Problem::even(mine.what, world.size(), world.size()));
    if (speaks) std::printf("%s\n", draw_text(schedules).c_str());

    // Step 4: run the algorithm on a real backend. Compare the result with the result of the algorithm that Chorale chooses.
    std::vector<std::int64_t> x(1000, 1 + world.rank()), y = x;
    world.all_reduce({y.data(), 1000, DType::i64});
    world.choose(mine);
    world.all_reduce({x.data(), 1000, DType::i64});
    if (x != y) throw Error(Exit::check, "the sums differ", "line and auto disagree", "mend the schedule");
    if (speaks)
      std::printf("run on %d ranks: every element is %ld, as with the library's own algorithm\n", world.size(),
                  static_cast<long>(x[0]));
  });
}
