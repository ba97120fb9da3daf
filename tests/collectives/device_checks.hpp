// Checks collectives on device buffers. A backend accesses device buffers directly or stages them. Every algorithm must give
// correct results, also with many calls in flight. If a call mixes host and device buffers, every rank must get an error.
#pragma once
#include "src/memory/device_plugin.hpp"
#include "tests/collectives/backends/far_trial.hpp"
#include "tests/collectives/schedule/planning.hpp"
#include "tests/collectives/worlds.hpp"
#include "tests/far_memory.hpp"
#include "tests/sample.hpp"

namespace chorale::test {

// Returns the memory of a GPU if the plugin finds one and the process has a single thread (the emulated GPU serves only one
// thread). Otherwise, returns a FarMemory, which stands in for GPU memory.
inline std::shared_ptr<Memory> some_device(bool single_thread) {
  const DevicePlugin plugin;
  std::string why_none;
  if (!single_thread || cuda_devices(plugin, &why_none).empty()) return std::make_shared<FarMemory>();
  return cuda_memory(plugin, 0);
}

// An allocator of device memory. If the backend itself allocates device memory, as nccl does, the buffers are on the
// backend's device. Otherwise, the buffers are on a device that the backend cannot access, so they must be staged.
struct FarDevice {
  explicit FarDevice(Communicator& c)
      : own(some_device(c.backend() != "threads")),
        allocator(c.allocator().device().is_host() ? Allocator(*own, ledger) : c.allocator()) {
    if (c.allocator().device().is_host()) c.use_device(own);
  }
  Memory& memory() const { return allocator.memory(); }

  std::shared_ptr<Memory> own;
  Ledger ledger;
  Allocator allocator;
};

inline std::string every_algorithm(Communicator& c) {
  FarDevice device(c);
  const int p = c.size();
  std::size_t turn = 0;
  Sample third(3);
  for (const Algorithm& algorithm : all_algorithms())
    for (const std::int64_t count : {0, 1, 2 * p + 1, 3000})
      for (const bool in_place : {false, true}) {
        Problem problem = Problem::even(algorithm.what, algorithm.what == Collective::all_to_all ? count / p * p : count, p,
                                        static_cast<int>(turn) % p, in_place);
        problem.rank = c.rank();
        const auto dtype = all_dtypes[turn % std::size(all_dtypes)];
        const auto op = static_cast<Redop>(turn % std::size(redop_names));
        ++turn;
        const bool blocks_of_one_size = algorithm.what == Collective::gather || algorithm.what == Collective::scatter;
        if (algorithm.what == Collective::barrier || (blocks_of_one_size && (in_place || count % p != 0))) continue;
        if (algorithm.what == Collective::broadcast && !in_place) continue;
        if (count == 0 && in_place) continue;  // an empty buffer has no meaningful address
        if (!fits(algorithm, problem) || !third.takes()) continue;
        c.choose(algorithm.what, turn % 5 == 0 && c.transport().has_native(algorithm.what) ? "native" : algorithm.name);
        FarTrial trial(problem, dtype, op, device.allocator);
        for (int again = 0; again < 2; ++again) {
          if (again == 1 && in_place) break;  // the first run overwrote the input
          c.run(trial.call());
          if (const std::string wrong = trial.trouble(); !wrong.empty()) return fmt::format("{} {}", algorithm.name, wrong);
        }
      }
  return "";
}

inline std::string many_calls_in_flight(Communicator& c) {
  FarDevice device(c);
  Communicator part = c.split(c.rank() % 2, 0);
  std::vector<std::unique_ptr<FarTrial>> trials;
  std::vector<Request> requests;
  for (int i = 0; i < 30; ++i) {
    Communicator& group = i % 3 == 0 ? part : c;
    Problem problem =
        Problem::even(Collective::all_reduce, i % 5 == 4 ? 1 << 20 : 100 + 37 * i, group.size(), 0, i % 2 == 0);
    problem.rank = group.rank();
    trials.push_back(std::make_unique<FarTrial>(problem, DType::f32, Redop::sum, device.allocator));
    requests.push_back(group.start(trials.back()->call()));
  }
  for (Request& request : requests) request.wait();
  for (const auto& trial : trials)
    if (const std::string wrong = trial->trouble(); !wrong.empty()) return wrong;
  return "";
}

// Calls on device buffers and calls on host buffers alternate. The backend stages one of the two kinds of buffer. A library
// such as MPI matches collectives by their order, so staging must not change the order of the calls.
inline std::string calls_of_both_kinds(Communicator& c) {
  FarDevice device(c);
  if (c.transport().has_native(Collective::all_reduce)) c.choose("native");
  std::vector<std::unique_ptr<FarTrial>> trials;
  std::vector<std::int32_t> sums(40, 1);
  std::vector<Request> requests;
  for (std::int32_t& sum : sums) {
    Problem problem = Problem::even(Collective::all_reduce, 1 + 10 * static_cast<int>(trials.size()), c.size(), 0, false);
    problem.rank = c.rank();
    trials.push_back(std::make_unique<FarTrial>(problem, DType::i32, Redop::sum, device.allocator));
    requests.push_back(c.start(trials.back()->call()));
    requests.push_back(c.start_all_reduce({&sum, 1, DType::i32}));
  }
  c.barrier();
  for (Request& request : requests) request.wait();
  for (const auto& trial : trials)
    if (const std::string wrong = trial->trouble(); !wrong.empty()) return wrong;
  return std::ranges::count(sums, c.size()) == std::ssize(sums) ? "" : "a sum of host buffers is wrong";
}

// In a call, one rank or every rank mixes host and device buffers. After the error, the world must still work.
inline std::string mixed_buffers(Communicator& c) {
  if (c.size() < 2) return "";
  FarDevice device(c);
  std::vector<float> host(100, 1);
  const Buffer far = device.allocator.allocate(400, Category::workspace);
  const Slice near{host.data(), 100, DType::f32}, on_device{far.data(), 100, DType::f32, device.memory().device()};
  device.memory().copy_in(far.data(), host.data(), 400);
  const bool odd_one = c.rank() == c.size() - 1;
  const auto refused = [&](Slice input, Slice output, const std::string& words) -> std::string {
    Communicator group = c.split(0, c.rank());
    const std::string said = thrown_by([&] {
      group.all_reduce(input, output);
      group.barrier();  // a rank whose all_reduce succeeded gets the error here
    });
    return said.find(words) != std::string::npos ? "" : "mixed buffers: " + said;
  };
  const Slice mine = odd_one ? on_device : near;
  std::string wrong = refused(mine, mine, "rank");
  wrong +=
      refused(near, on_device, "mixes host and device buffers\n  the input is on host, the output on cuda:0\n  copy one");
  wrong += refused(near, odd_one ? on_device : near, "rank");
  std::vector<float> long_host(1 << 20, 1);  // staged by several copies, none of which may continue after the error
  const Buffer long_far = device.allocator.allocate(4 << 20, Category::workspace);
  const Slice cut = odd_one ? Slice{long_far.data(), 1 << 20, DType::f32, device.memory().device()}
                            : Slice{long_host.data(), 1 << 20, DType::f32};
  wrong += refused(cut, cut, "rank");
  float one = 1;
  c.all_reduce({&one, 1, DType::f32});
  return one == static_cast<float>(c.size()) ? wrong : "the world no longer works";
}

constexpr Check device_checks[] = {{"every algorithm on device buffers", every_algorithm},
                                   {"many calls on device buffers in flight", many_calls_in_flight},
                                   {"alternating calls on host and device buffers", calls_of_both_kinds},
                                   {"mixed buffers are refused", mixed_buffers}};

}  // namespace chorale::test
