// Calls on ordinary buffers, which peers cannot map. Short messages from ordinary buffers are staged in symmetric memory,
// and long messages are copied by the kernel. The tests vary the algorithm, the length of the vectors, and the longest
// staged message. Some or all ranks pass ordinary buffers as the input, the output or both, also in several concurrent
// calls. Every path must give the same bits.
#include <algorithm>
#include <cmath>
#include <list>
#include <numeric>

#include <chorale/algorithm.hpp>
#include "collectives/backends/mapped/transport.hpp"
#include "collectives/choice/selection.hpp"
#include "tests/collectives/expectation.hpp"
#include "tests/collectives/worlds.hpp"

using namespace chorale;
using namespace chorale::test;

namespace {

// A world on a backend that maps its peers' memory, and an allocator of ordinary memory.
struct Host {
  explicit Host(std::int64_t staged_up_to) { reach().staged_up_to = staged_up_to; }
  mapped::Reach& reach() { return dynamic_cast<mapped::MappedTransport&>(c.transport()).reach(); }
  Allocator& memory(bool symmetric) { return symmetric ? c.allocator() : ordinary; }

  SystemClock clock;
  HostMemory heap;
  Ledger ledger;
  Allocator ordinary{heap, ledger};
  Communicator c = open_world("shm", world(), clock);
};

Problem problem_for(Communicator& c, Collective what, std::int64_t count, std::size_t turn, bool in_place) {
  const int root = static_cast<int>(turn) % c.size();
  return Problem::even(what, count, c.size(), root, in_place || what == Collective::broadcast).at(c.rank());
}

}  // namespace

TEST_CASE("results are right whichever messages are staged and whichever ranks have ordinary buffers", "[spmd]") {
  std::string wrong;
  std::size_t turn = 0;
  for (const std::int64_t staged_up_to : {0, 3000, 1 << 30}) {
    Host host(staged_up_to);
    Communicator& c = host.c;
    for (const Algorithm& algorithm : all_algorithms())
      for (const bool in_place : {false, true}) {
        const std::int64_t bytes = 40'000 + 8 * static_cast<std::int64_t>(turn % 7);  // too many for cells
        const DType dtype = all_dtypes[++turn % std::size(all_dtypes)];
        const Problem problem = problem_for(c, algorithm.what, bytes / size_of(dtype) / c.size() * c.size(), turn, in_place);
        if (!fits(algorithm, problem) || algorithm.what == Collective::barrier) continue;
        c.choose(algorithm.what, algorithm.name, turn % 5 == 0 ? 20 : 1 + static_cast<int>(turn % 2));
        const bool symmetric = turn / 3 % 3 == 0 ? false : (c.rank() + static_cast<int>(turn)) % 2 == 0;
        const Trial trial(problem, dtype, static_cast<Redop>(turn % std::size(redop_names)), host.memory(symmetric));
        for (int again = 0; again < (in_place ? 1 : 2); ++again) c.run(trial.call());
        if (wrong.empty() && !trial.trouble().empty()) wrong = algorithm.name + (": " + trial.trouble());
      }
  }
  REQUIRE_ALL(wrong == "");
}

// On two ranks a sum of two numbers has one order only, so the case says more on three and four ranks.
TEST_CASE("a float sum has the same bits in mapped, staged and kernel-copied memory", "[spmd]") {
  constexpr std::int64_t count = 9001;
  std::size_t turn = 0;
  for (const Algorithm& algorithm : all_algorithms()) {
    if (!reduces(algorithm.what)) continue;
    const bool in_place = ++turn % 2 == 0;
    const int chunks = turn % 3 == 0 ? 3 : 1;
    std::vector<std::vector<float>> sums;
    for (const std::int64_t staged_up_to : {-1, 0, 1000, 1 << 30}) {  // −1: in symmetric memory
      Host host(std::max<std::int64_t>(staged_up_to, 0));
      const Problem problem = Problem::even(algorithm.what, count, host.c.size(), 0, in_place).at(host.c.rank());
      if (!fits(algorithm, problem)) continue;
      host.c.choose(algorithm.what, algorithm.name, chunks);
      const Buffer in = host.memory(staged_up_to < 0).allocate(count * 4, Category::workspace);
      const Buffer out = host.memory(staged_up_to < 0).allocate(count * 4, Category::workspace);
      auto* x = static_cast<float*>(in.data());
      for (std::int64_t i = 0; i < count; ++i)  // sums of these numbers depend on the order
        x[i] = std::ldexp(1.0F + static_cast<float>((i * 37 + host.c.rank() * 11) % 101) / 101, (host.c.rank() * 5) % 23);
      float* const y = in_place ? x + problem.output_home() : static_cast<float*>(out.data());
      const bool has_output = algorithm.what != Collective::reduce || host.c.rank() == 0;
      host.c.run({algorithm.what,
                  {x, problem.input_count(), DType::f32},
                  {y, in_place || has_output ? problem.output_count() : 0, DType::f32},
                  Redop::sum,
                  0});
      sums.emplace_back(y, y + (has_output ? problem.output_count() : 0));
    }
    const bool equal = std::ranges::all_of(sums, [&](const std::vector<float>& sum) { return sum == sums.front(); });
    INFO(algorithm.name << " of " << name_of(algorithm.what));
    REQUIRE_ALL(equal);
  }
}

TEST_CASE("the machine file says which messages are staged, if it was measured with cores shared alike", "[spmd]") {
  Host host(5000);
  const auto go_by = [&](const char* backend, std::int64_t bytes, int cores, int ranks) {
    Machine machine{.signature = machine_signature(), .cores = cores};
    machine.levels = {{.backend = backend, .ranks = ranks, .staged_bytes = bytes}};
    host.c.go_by(std::make_shared<Selector>(TuningTable{}, machine));
    return host.reach().staged_up_to;
  };
  const int p = host.c.size();
  const std::int64_t usual = go_by("mpi", 700, p, p);
  REQUIRE_ALL((usual == mapped::usual_staged_bytes || usual == mapped::staged_bytes_on_shared_cores));
  REQUIRE_ALL(go_by("shm", 700, p, p) == 700);
  REQUIRE_ALL(go_by("shm", 0, p, p) == 0);
  REQUIRE_ALL(go_by("shm", -1, p, p) == usual);
  REQUIRE_ALL(go_by("shm", 700, p, p + 1) == usual);
  REQUIRE_ALL(go_by("shm", 700, p - 1, p + 1) == 700);
}

TEST_CASE("only the input, or only the output, may be ordinary", "[spmd]") {
  Host host(4096);
  constexpr std::int64_t count = 10001;
  for (const int which : {0, 1, 2}) {  // 2: depends on the rank
    const bool input_symmetric = (which == 2 ? host.c.rank() : which) % 2 == 0;
    const Buffer in = host.memory(input_symmetric).allocate(count * 8, Category::workspace);
    const Buffer out = host.memory(!input_symmetric).allocate(count * 8, Category::workspace);
    auto* x = static_cast<std::int64_t*>(in.data());
    const auto* y = static_cast<std::int64_t*>(out.data());
    std::iota(x, x + count, host.c.rank());
    host.c.all_reduce({x, count, DType::i64}, {out.data(), count, DType::i64});
    const std::int64_t p = host.c.size();
    bool right = true;
    for (std::int64_t i = 0; i < count; ++i) right = right && y[i] == p * i + p * (p - 1) / 2;
    REQUIRE_ALL(right);
  }
}

TEST_CASE("several calls on ordinary buffers can be in flight at once, also together with other calls", "[spmd]") {
  Host host(2000);
  std::list<Trial> trials;
  std::vector<Request> requests;
  for (std::size_t turn = 0; turn < 24; ++turn) {
    const Collective what = turn % 4 == 0   ? Collective::broadcast
                            : turn % 4 == 1 ? Collective::reduce
                            : turn % 4 == 2 ? Collective::all_reduce
                                            : Collective::all_gather;
    const bool symmetric = turn % 3 == 0 || (turn % 3 == 1 && host.c.rank() == 0);
    const auto count = static_cast<std::int64_t>(turn * 700);
    trials.emplace_back(problem_for(host.c, what, count, turn, false), DType::f32, Redop::sum, host.memory(symmetric));
    requests.push_back(host.c.start(trials.back().call()));
  }
  for (std::size_t r = 0; r < requests.size(); ++r)  // in a different order on each rank
    requests[(r * 5 + static_cast<std::size_t>(host.c.rank())) % requests.size()].wait();
  std::string wrong;
  for (const Trial& trial : trials)
    if (wrong.empty()) wrong = trial.trouble();
  REQUIRE_ALL(wrong == "");
}

TEST_CASE("ordinary buffers take no symmetric memory where the kernel copies", "[spmd]") {
  Host host(1 << 14);
  if (!host.reach().has_kernel_copies()) return;
  host.c.choose(Collective::all_reduce, "direct");  // needs no workspace
  const auto taken = [&] { return host.reach().memory().ledger().current(Category::comm); };
  std::vector<float> x(1 << 20, 1), y(x.size());
  const auto whole = [](std::vector<float>& v) { return Slice{v.data(), static_cast<std::int64_t>(v.size()), DType::f32}; };
  host.c.barrier();
  const std::int64_t before = taken();
  host.c.all_reduce(whole(x), whole(y));
  REQUIRE_ALL(taken() - before <= (host.c.size() + 2) * (128 << 10));  // a segment of each addend of a sum
  REQUIRE_ALL(std::count(y.begin(), y.end(), static_cast<float>(host.c.size())) == std::ssize(y));
}

TEST_CASE("exchanges of ordinary buffers with new counts in every call take a bounded amount of symmetric memory",
          "[spmd]") {
  Host host(1 << 16);
  host.c.choose(Collective::all_to_all, "direct");
  const auto p = static_cast<std::size_t>(host.c.size());
  constexpr std::size_t most = 5000;
  std::vector<float> x(p * most, 1), y(x.size());
  std::int64_t taken = 0;
  for (std::size_t call = 0; call < 60; ++call) {
    if (call == 30) taken = host.reach().memory().ledger().current(Category::comm);
    const auto each = static_cast<std::int64_t>(most - call);
    const std::vector<std::int64_t> counts(p, each), of_all(p * p, each);
    const Slice input{x.data(), each * host.c.size()}, output{y.data(), each * host.c.size()};
    host.c.all_to_all(input, output, counts, counts, of_all);
  }
  REQUIRE_ALL(host.reach().memory().ledger().current(Category::comm) <= taken);
}
