// Sums a vector over all ranks on a backend of your choice, and says what came out and how fast.
//
//   mpirun -np 2 ./all_reduce shm 1000000
#include <algorithm>
#include <chorale/chorale.hpp>
#include <cstdio>
#include <cstdlib>

using namespace chorale;

int main(int argc, char** argv) {
  return mpi::run_ranks([&](const mpi::Runtime& runtime) {
    const char* backend = argc > 1 ? argv[1] : "shm";
    const std::int64_t count = argc > 2 ? std::atoll(argv[2]) : 1'000'000;
    if (count < 1) usage_error("there is nothing to sum", "an empty vector was asked for", "give the number of elements");

    SystemClock clock;
    Communicator world = open_world(backend, runtime, clock);
    const Buffer memory = world.allocator().allocate(count * size_of(DType::f32), Category::comm);  // peers read it directly
    auto* x = static_cast<float*>(memory.data());
    std::fill_n(x, count, static_cast<float>(1 + world.rank()));
    const Slice vector{x, count, DType::f32};
    world.all_reduce(vector);  // in place: x is now 1 + 2 + … + ranks, everywhere

    const int times = 20, ranks = world.size();
    world.barrier();
    const double started = clock.seconds();
    for (int i = 0; i < times; ++i) world.all_reduce(vector, Redop::max);
    const double seconds = (clock.seconds() - started) / times;
    const double bus = 2.0 * (ranks - 1) / ranks * static_cast<double>(vector.bytes()) / seconds;  // what each link carried
    if (world.rank() == 0)
      std::printf("%s, %d ranks: every x[i] is %g; %.1f us, %.2f GB/s on the bus\n", backend, ranks, x[count - 1],
                  seconds * 1e6, bus / 1e9);
  });
}
