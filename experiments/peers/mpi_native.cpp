// Times the collectives of an MPI library with the same method as `chorale bench`. This program shares no code with chorale.
// `make peers` builds this program with every installed MPI library. alternate.py runs this program and bench in turns.
//
//   mpirun.mpich -n 2 build/peers/mpich [END_BYTES [FACTOR [hot|cold [BEGIN_BYTES]]]]
//
// Prints JSON with the keys of `chorale bench`: op ranks bytes in_place seconds …
//
// A repetition is one call after a barrier, and its time is the time of the slowest rank. A row has the median over
// repetitions. Sizes follow nccl-tests: the vector of an all_reduce, the gathered vector of an all_gather, the input vector
// of a reduce_scatter. Calls with cold buffers rotate through a memory area of twice the last-level cache.
#define OMPI_SKIP_MPICXX 1  // leaves out the C++ bindings, which MPI 3 removed
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <vector>

namespace {

// `in` is null for an in-place call.
using Call = std::function<void(const float* in, float* out, int count)>;

struct Row {
  const char* op;
  double bus_factor;
  bool out_of_place;  // whether the operation has an out-of-place form
  Call call;
};

std::vector<Row> rows(int n) {
  const double others = 1.0 * (n - 1) / n;
  const auto given = [](const float* in) -> const void* { return in ? in : MPI_IN_PLACE; };
  return {{"all_reduce", 2 * others, true,
           [=](const float* in, float* out, int count) {
             MPI_Allreduce(given(in), out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
           }},
          {"reduce_scatter", others, true,
           [=](const float* in, float* out, int count) {
             MPI_Reduce_scatter_block(given(in), out, count / n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
           }},
          {"all_gather", others, true,
           [=](const float* in, float* out, int count) {
             MPI_Allgather(given(in), count / n, MPI_FLOAT, out, count / n, MPI_FLOAT, MPI_COMM_WORLD);
           }},
          {"broadcast", 1, false,
           [](const float*, float* out, int count) { MPI_Bcast(out, count, MPI_FLOAT, 0, MPI_COMM_WORLD); }},
          {"all_to_all", others, true, [=](const float* in, float* out, int count) {
             MPI_Alltoall(given(in), count / n, MPI_FLOAT, out, count / n, MPI_FLOAT, MPI_COMM_WORLD);
           }}};
}

bool more_ranks_than_cores() {
  int n = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &n);
  return n > sysconf(_SC_NPROCESSORS_ONLN);
}

double median_of_slowest(const Row& row, std::size_t bytes, bool in_place, bool cold) {
  const std::size_t count = bytes / sizeof(float), stride = (count + 31) / 32 * 32;  // a multiple of two cache lines
  long cache = 1024;  // size of the last-level cache in KiB; at least 1 MiB
  for (const char level : {'2', '3'})
    if (long kib = 0; std::ifstream(std::string("/sys/devices/system/cpu/cpu0/cache/index") + level + "/size") >> kib)
      cache = std::max(cache, kib);
  cache *= 1024;
  const std::size_t slots = cold ? std::max<std::size_t>(3, static_cast<std::size_t>(cache) / (stride * 4) + 1) : 1;
  std::vector<float> in(slots * stride), out(slots * stride);
  const int repetitions = bytes < 64u << 10 ? 2000 : bytes < 8u << 20 ? 200 : 20;
  const bool crowded = more_ranks_than_cores();
  std::vector<double> times(static_cast<std::size_t>(repetitions)), slowest(times);
  for (int i = -5; i < repetitions; ++i) {
    const std::size_t first = static_cast<std::size_t>(i + 5) * (slots * 618 / 1000 | 1) % slots * stride;
    if (crowded) sched_yield();  // lets a rank that still waits in its call go on, as bench does
    MPI_Barrier(MPI_COMM_WORLD);
    const double started = MPI_Wtime();
    row.call(in_place ? nullptr : in.data() + first, out.data() + first, static_cast<int>(count));
    if (i >= 0) times[static_cast<std::size_t>(i)] = MPI_Wtime() - started;
  }
  MPI_Reduce(times.data(), slowest.data(), repetitions, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  std::nth_element(slowest.begin(), slowest.begin() + repetitions / 2, slowest.end());
  return slowest[slowest.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, n = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &n);
  const std::size_t end = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 64u << 20;
  const std::size_t factor = std::max<std::size_t>(argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 8, 2);
  const bool cold = argc > 3 && std::strcmp(argv[3], "cold") == 0;
  const std::size_t begin = argc > 4 ? std::strtoull(argv[4], nullptr, 10) : 8;
  const char* separator = "[";
  for (const Row& row : rows(n))
    for (const bool in_place : {false, true}) {
      if (!in_place && !row.out_of_place) continue;
      for (std::size_t size = begin; size <= end; size *= factor) {
        const bool blocks = std::strcmp(row.op, "all_reduce") != 0 && std::strcmp(row.op, "broadcast") != 0;
        const std::size_t whole = sizeof(float) * static_cast<std::size_t>(blocks ? n : 1);
        const std::size_t bytes = std::max(size / whole, std::size_t{1}) * whole;
        const double seconds = median_of_slowest(row, bytes, in_place, cold),
                     bandwidth = static_cast<double>(bytes) / seconds;
        if (rank == 0)
          std::printf(
              "%s{\"op\":\"%s\",\"backend\":\"peer\",\"algorithm\":\"native\",\"ranks\":%d,\"dtype\":\"f32\",\"bytes\":%zu,"
              "\"in_place\":%s,\"cache\":\"%s\",\"seconds\":%.5g,\"algbw_bytes_per_s\":%.4g,"
              "\"busbw_bytes_per_s\":%.4g}",
              separator, row.op, n, bytes, in_place ? "true" : "false", cold ? "cold" : "hot", seconds, bandwidth,
              bandwidth * row.bus_factor);
        separator = ",\n ";
      }
    }
  if (rank == 0) std::printf("]\n");
  MPI_Finalize();
}
