#include "src/math/peak.hpp"

#include <sched.h>

#include <algorithm>
#include <barrier>
#include <system_error>
#include <thread>

#include <chorale/clock.hpp>
#include "src/memory/on_host.hpp"

namespace chorale {
namespace {

constexpr double patience = 0.02;  // in seconds: if a product takes longer than this, no larger size is tried
constexpr double window = 0.25;    // time spent on each size, in seconds
constexpr std::int64_t smallest = 256, largest_of_core = 1024, largest_of_device = 8192;

// Returns a tensor of random values, because a GPU multiplies regular data faster than real data. An H200 reached 888
// TFLOP/s with equal rows, and 790 TFLOP/s with random values.
Tensor filled(Allocator& allocator, std::int64_t side, DType dtype) {
  const Tensor tensor(allocator, {side, side}, dtype, Category::workspace);
  visit_floating(dtype, [&]<class T>(Type<T>) {
    with_values<T>(tensor, Use::write, [](std::span<T> values) {
      std::uint64_t state = 1;  // state of a linear congruential generator, whose upper bits are random
      for (T& value : values) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        value = static_cast<T>(static_cast<float>(state >> 54) / 512.0f - 1.0f);
      }
    });
  });
  return tensor;
}

// Repeated products of two square matrices, on one core or on a device.
class Squares {
 public:
  Squares(DType dtype, Memory& memory, const DevicePlugin* device)
      : dtype_(dtype),
        allocator_(memory, ledger_),
        queue_(queue_on(device, 1)),
        numerics_(numerics_on(device, NumericsKind::fast)) {}

  // Runs the first product of a size, which prepares it (oneDNN compiles code, CUDA loads kernels).
  void begin(std::int64_t side) {
    x_ = filled(allocator_, side, dtype_);
    w_ = filled(allocator_, side, dtype_);
    y_ = filled(allocator_, side, dtype_);
    seconds_of_one();
  }
  // Returns the time of the fastest product that ends within the window. The window begins at `start` on all cores. If no
  // product ends within the window, returns the time of the first product. The fastest product counts, not the mean, because
  // a single product is short enough to run undisturbed even on a busy machine.
  double fastest_seconds(double start) {
    double fastest = seconds_of_one();
    while (true) {
      const double seconds = seconds_of_one();
      if (clock_.seconds() > start + window) return fastest;
      fastest = std::min(fastest, seconds);
    }
  }

 private:
  double seconds_of_one() {
    const double before = clock_.seconds();
    numerics_->product(x_, w_, false, nullptr, y_, queue_);
    if (queue_.device) queue_.device->wait(queue_);
    return clock_.seconds() - before;
  }

  DType dtype_;
  Ledger ledger_;
  Allocator allocator_;
  SystemClock clock_;
  Queue queue_;
  std::unique_ptr<Numerics> numerics_;
  Tensor x_, w_, y_;
};

double operations(std::int64_t side) { return 2.0 * static_cast<double>(side * side * side); }

void run_on(const std::vector<int>& cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus) CPU_SET(cpu, &set);
  if (!cpus.empty())
    sched_setaffinity(0, sizeof set, &set);  // affects only this thread; if the kernel refuses, the thread is not moved
}

}  // namespace

double product_peak(DType dtype, int cores, const std::vector<int>& cpus) {
  const SystemClock clock;
  std::vector<double> seconds(static_cast<std::size_t>(cores));
  std::vector<std::exception_ptr> failures(seconds.size());
  double start = 0, peak = 0;
  std::int64_t side = smallest;
  bool larger = true;
  std::barrier ready(cores, [&]() noexcept { start = clock.seconds(); });
  std::barrier done(cores, [&]() noexcept {
    double sum = 0;
    for (const double s : seconds) sum += s > 0 ? operations(side) / s : 0;
    peak = std::max(peak, sum);
    larger = *std::max_element(seconds.begin(), seconds.end()) < patience && side < largest_of_core;
    side *= 2;
  });
  const auto work = [&](std::size_t core) {
    try {
      run_on(cpus);
      HostMemory host;
      Squares squares(dtype, host, nullptr);
      while (larger) {
        squares.begin(side);
        ready.arrive_and_wait();
        seconds[core] = squares.fastest_seconds(start);
        done.arrive_and_wait();
      }
    } catch (...) {
      failures[core] = std::current_exception();
      ready.arrive_and_drop();
      done.arrive_and_drop();
    }
  };
  {
    std::vector<std::jthread> threads;
    for (std::size_t core = 0; core < seconds.size(); ++core) try {
        threads.emplace_back(work, core);
      } catch (const std::system_error&) {  // the system allows no more threads; the running threads must not wait for the
                                            // missing thread
        failures[core] = std::current_exception();
        ready.arrive_and_drop();
        done.arrive_and_drop();
      }
  }
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
  return peak;
}

double product_peak(DType dtype, Memory& memory, const DevicePlugin& device) {
  const SystemClock clock;
  Squares squares(dtype, memory, &device);
  double peak = 0, seconds = 0;
  for (std::int64_t side = smallest; side <= largest_of_device && seconds < patience; side *= 2) {
    squares.begin(side);
    seconds = squares.fastest_seconds(clock.seconds());
    peak = std::max(peak, operations(side) / seconds);
  }
  return peak;
}

}  // namespace chorale
