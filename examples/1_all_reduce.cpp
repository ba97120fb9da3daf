// 1. Sums a vector over all ranks on a backend of your choice, checks the sum, and prints the bandwidth.
//
//   mpirun -np 2 ./1_all_reduce shm 1000000
#include <algorithm>
#include <chorale/chorale.hpp>
#include <cstdio>
#include <cstdlib>

using namespace chorale;

int main(int argc, char** argv) {
  return mpi::run_ranks([&](const mpi::Runtime& runtime) {
    const char* backend = argc > 1 ? argv[1] : "shm";
    const std::int64_t count = argc > 2 ? std::atoll(argv[2]) : 1'000'000;
    if (count < 1) usage_error("there is nothing to sum", "the vector has no elements", "give the number of elements");

    // Step 1: join all ranks on the backend.
    SystemClock clock;
    Communicator world = open_world(backend, runtime, clock);

    // Step 2: allocate a vector in memory that peers can read directly. Other memory works too, but costs a copy.
    const Buffer memory = world.allocator().allocate(count * size_of(DType::f32), Category::comm);
    auto* x = static_cast<float*>(memory.data());
    std::fill_n(x, count, static_cast<float>(1 + world.rank()));
    const Slice vector{x, count, DType::f32};

    // Step 3: sum the vector in place. Every element is then 1 + 2 + … + ranks, on every rank.
    world.all_reduce(vector);
    const int ranks = world.size();
    const auto sum = static_cast<float>(ranks * (ranks + 1) / 2);
    const auto wrong = count - std::count(x, x + count, sum);
    if (wrong > 0)
      throw Error(Exit::check, "the sum is wrong", std::to_string(wrong) + " elements differ", "please report this");

    // Step 4: time twenty calls.
    const int times = 20;
    world.barrier();
    const double started = clock.seconds();
    for (int i = 0; i < times; ++i) world.all_reduce(vector, Redop::max);
    const double seconds = (clock.seconds() - started) / times;
    const double bus = 2.0 * (ranks - 1) / ranks * static_cast<double>(vector.bytes()) / seconds;  // bytes/s on each link
    if (world.rank() == 0)
      std::printf("%s, %d ranks: every x[i] is %g; %.1f us, %.2f GB/s on the bus\n", backend, ranks, sum, seconds * 1e6,
                  bus / 1e9);
  });
}
