// Tests the complete nccl backend. `make test` runs these tests on the emulated GPU and NCCL (tests/cuda/emulation). Without
// the emulation, they run on real GPUs if there are any.
#include <cstdlib>

#include "collectives/transport/transport.hpp"
#include "tests/collectives/backends/registrations.hpp"
#include "tests/collectives/device_checks.hpp"

namespace chorale::test {
namespace {

// Tests groups, sums, averages and barriers on host buffers. The nccl backend stages host buffers through the device.
std::string host_buffers(Communicator& c) {
  std::int32_t one = c.rank() + 1, sum = 0;
  c.all_reduce({&one, 1, DType::i32}, {&sum, 1, DType::i32});
  if (sum != c.size() * (c.size() + 1) / 2) return "a sum of host buffers is wrong";
  float mine = static_cast<float>(c.rank()), mean = -1;
  c.all_reduce({&mine, 1, DType::f32}, {&mean, 1, DType::f32}, Redop::avg);
  if (mean != static_cast<float>(c.size() - 1) / 2) return "an average of host buffers is wrong";
  Communicator odd_or_even = c.split(c.rank() % 2, -c.rank());
  odd_or_even.barrier();
  std::int32_t count = 1;
  odd_or_even.all_reduce({&count, 1, DType::i32});
  return count == (c.size() + 1 - c.rank() % 2) / 2 ? "" : "a group has other members than its color";
}

std::string messages_on_devices(Communicator& c) {
  const int p = c.size(), rank = c.rank();
  std::vector<Buffer> buffers;
  std::vector<Request> requests;
  const auto slice = [&](std::int32_t value) {
    buffers.push_back(c.allocator().allocate(4, Category::workspace));
    c.allocator().memory().copy_in(buffers.back().data(), &value, 4);
    return Slice{buffers.back().data(), 1, DType::i32, c.allocator().device()};
  };
  for (int peer = 0; peer < p; ++peer)
    for (int i = 0; i < 3 && peer != rank; ++i) {
      requests.push_back(c.start_recv(slice(-1), peer));
      requests.push_back(c.start_send(slice(100 * rank + i), peer));
    }
  c.barrier();
  for (Request& request : requests) request.wait();
  std::size_t at = 0;
  for (int peer = 0; peer < p; ++peer)
    for (int i = 0; i < 3 && peer != rank; ++i, at += 2) {
      std::int32_t got = 0;
      c.allocator().memory().copy_out(&got, buffers[at].data(), 4);
      if (got != 100 * peer + i) return fmt::format("message {} of rank {} is {}", i, peer, got);
    }
  return "";
}

// NCCL hangs if ranks make mismatched calls. Ranks detect mismatched calls by control messages over MPI. Then the group is
// aborted, and the world still works.
std::string calls_that_differ(Communicator& c) {
  if (c.size() < 2) return "";
  std::vector<std::int32_t> x(64, 1), all(64 * static_cast<std::size_t>(c.size()));
  const bool odd_one = c.rank() == c.size() - 1;
  for (const char* algorithm : {"ring", "native"}) {
    Communicator group = c.split(0, c.rank());
    group.choose(algorithm);
    const std::string said = thrown_by([&] {
      if (odd_one)
        group.all_gather({x.data(), 64, DType::i32}, {all.data(), 64 * c.size(), DType::i32});
      else
        group.all_reduce({x.data(), 64, DType::i32});
      group.barrier();
    });
    if (said.find("made different calls") == std::string::npos) return algorithm + (": " + said);
    if (thrown_by([&] { group.barrier(); }).find("gave up") == std::string::npos) return "a failed group still works";
  }
  return host_buffers(c);
}

Slice floats_at(const Buffer& buffer) { return {buffer.data(), buffer.bytes() / 4, DType::f32, buffer.device()}; }

// Every communicator that uses a buffer registers the buffer's memory once. (The emulated NCCL detects memory that is freed
// while it is still registered.)
std::string memory_is_registered_once(Communicator& c) {
  auto* const known_to = registrations();
  if (!known_to) return "";
  Buffer large = c.allocator().allocate(4 << 20, Category::comm);
  const Buffer small = c.allocator().allocate(100, Category::comm), beside = c.allocator().allocate(100, Category::comm);
  Communicator group = c.split(0, c.rank());
  const std::int64_t at_first = known_to(large.data());
  for (const char* algorithm : {"native", "ring", "direct"}) {
    group.choose(algorithm);
    for (const std::int64_t first : {0, 777777}) group.all_reduce(floats_at(large).narrow(first, 1000));
    group.all_reduce(floats_at(small));
  }
  const std::int64_t in_one = known_to(large.data()), neighbors = known_to(beside.data());
  c.all_reduce(floats_at(large));
  const std::int64_t in_two = known_to(large.data());
  group = Communicator(nullptr);
  const std::int64_t after_one = known_to(large.data());
  large = Buffer();
  if (at_first != 0 || in_one != 1 || in_two != 2 || after_one != 1 || neighbors < 1)
    return fmt::format(
        "a buffer is registered with {}, {}, {} and {} communicators, expected 0, 1, 2 and 1; a small one with {}", at_first,
        in_one, in_two, after_one, neighbors);
  const std::int64_t ever = known_to(nullptr);
  for (int i = 0; i < 5; ++i) c.all_reduce(floats_at(small));
  return known_to(nullptr) == ever ? "" : "memory is registered again and again";
}

// Ranks pass buffers of different sizes. The allocator can put the smaller buffers into a shared block and the larger buffer
// into a separate block.
std::string sizes_that_differ(Communicator& c) {
  const std::int64_t most = (2 << 20) / 4, mine = c.rank() == 0 ? most : most - 1;
  std::vector<std::int64_t> counts(static_cast<std::size_t>(c.size()), most - 1);
  counts[0] = most;
  const Buffer part = c.allocator().allocate(4 * mine, Category::comm),
               whole = c.allocator().allocate(4 * (most + (c.size() - 1) * (most - 1)), Category::comm);
  for (const char* algorithm : {"native", "ring"}) {
    c.choose(algorithm);
    c.all_gather(floats_at(part), floats_at(whole), counts);
  }
  return "";
}

// If the buffers of a call do not come from the world's allocator, the call must register neither these buffers nor its
// workspace.
std::string memory_of_somebody_else(Communicator& c) {
  if (!registrations()) return "";
  const auto memory = cuda_memory(DevicePlugin(), 0);
  Ledger ledger;
  Allocator other(*memory, ledger);
  for (const char* algorithm : {"ring", "native", "direct", "ring"}) {
    c.choose(algorithm);
    for (Allocator* const from : {&other, &c.allocator(), &other}) {
      Problem problem = Problem::even(Collective::all_reduce, 3000, c.size(), 0, false);
      problem.rank = c.rank();
      FarTrial trial(problem, DType::f32, Redop::sum, *from);
      c.run(trial.call());
      if (const std::string wrong = trial.trouble(); !wrong.empty()) return wrong;
      if (from == &other && registrations()(trial.output().data) > 0) return "memory of another allocator is registered";
    }
  }
  return "";
}

// If memory is freed while device work on it is still pending, that work must not overwrite the data of the memory's next
// owner. In this test, the memory is reused for the device copy of a host buffer. The device copy is filled outside of all
// streams.
std::string memory_that_is_lent_again(Communicator& c) {
  auto* const hold = DevicePlugin().find<void(bool)>("chorale_emulated_hold");
  if (!hold) return "";
  std::int32_t one = 1, sum = 0;
  hold(true);
  {
    const Buffer gone = c.allocator().allocate(4, Category::comm);
    c.allocator().memory().clear(gone.data(), 4);
  }
  Request request = c.start({Collective::all_reduce, {&one, 1, DType::i32}, {&sum, 1, DType::i32}});
  hold(false);
  request.wait();
  return sum == c.size() ? "" : fmt::format("a sum of host buffers is {}", sum);
}

std::string memory_that_cannot_be_registered(Communicator& c) {
  const Buffer buffer = c.allocator().allocate(4000, Category::comm);
  const std::int64_t ever = registrations()(nullptr);
  c.all_reduce(floats_at(buffer));
  if (registrations()(nullptr) != ever) return "memory is registered nevertheless";
  const std::string said = c.transport().about_memory();
  return said == fmt::format("not registered with NCCL, which cannot register memory of rank {}", c.size() - 1) ? "" : said;
}

constexpr Check checks[] = {{"host buffers on NCCL", host_buffers},
                            {"messages on devices", messages_on_devices},
                            {"calls that differ", calls_that_differ},
                            {"memory is registered once", memory_is_registered_once},
                            {"sizes that differ", sizes_that_differ},
                            {"memory of another allocator", memory_of_somebody_else},
                            {"memory that is reused", memory_that_is_lent_again}};

}  // namespace

TEST_CASE("the backend nccl gives right results, and refuses calls that differ between ranks", "[spmd][nccl]") {
  SystemClock clock;
  if (!probe(backend_named("nccl")).works) return;
  for (const std::span<const Check> all : {std::span<const Check>(checks), std::span<const Check>(device_checks)})
    for (const Check& check : all) {
      const std::string trouble = trouble_of(check, open_world("nccl", world(), clock));
      INFO(check.name);
      REQUIRE_ALL(trouble == "");
    }
}

TEST_CASE("if NCCL has no memory for one rank, no rank registers any", "[spmd][nccl]") {
  SystemClock clock;
  if (!registrations()) return;
  if (world().rank() == world().size() - 1) setenv("EMULATED_NCCL_LENDS", "no", 1);
  Communicator c = open_world("nccl", world(), clock);
  unsetenv("EMULATED_NCCL_LENDS");
  const std::string trouble = trouble_of({"", memory_that_cannot_be_registered}, std::move(c));
  REQUIRE_ALL(trouble == "");
}

}  // namespace chorale::test
