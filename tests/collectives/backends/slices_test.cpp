// On the backends that map their peers' memory, a call on ordinary (not symmetric) buffers runs slice by slice. Each slice
// is copied to a bounce buffer in symmetric memory. The tests vary the algorithm, and use vector lengths close to multiples
// of the slice length. Some or all ranks pass ordinary buffers as the input, the output or both, also in several concurrent
// calls. The use of symmetric memory may grow only by the bounce buffers of one slice.
#include <list>
#include <numeric>

#include <chorale/algorithm.hpp>
#include "collectives/backends/mapped/transport.hpp"
#include "tests/collectives/expectation.hpp"
#include "tests/collectives/worlds.hpp"

using namespace chorale;
using namespace chorale::test;

namespace {

// A world on a backend that maps its peers' memory, and an allocator of ordinary memory.
struct Host {
  explicit Host(std::int64_t slice_bytes) { reach().slice_bytes = slice_bytes; }
  mapped::Reach& reach() { return dynamic_cast<mapped::MappedTransport&>(c.transport()).reach(); }
  Allocator& memory(bool symmetric) { return symmetric ? c.allocator() : ordinary; }

  SystemClock clock;
  HostMemory heap;
  Ledger ledger;
  Allocator ordinary{heap, ledger};
  Communicator c = open_world("shm", world(), clock);
};

bool can_be_cut(const Algorithm& algorithm) {
  return algorithm.what == Collective::all_reduce || algorithm.what == Collective::reduce ||
         algorithm.what == Collective::broadcast;
}

Problem problem_for(Communicator& c, Collective what, std::int64_t count, std::size_t turn, bool in_place) {
  const int root = static_cast<int>(turn) % c.size();
  return Problem::even(what, count, c.size(), root, in_place || what == Collective::broadcast).at(c.rank());
}

}  // namespace

TEST_CASE("results are right wherever slices end and whichever ranks have ordinary buffers", "[spmd]") {
  Host host(3000);
  Communicator& c = host.c;
  std::string wrong;
  std::size_t turn = 0;
  for (const Algorithm& algorithm : all_algorithms())
    for (const std::int64_t more : {0, 1, 2, -1})
      for (const bool in_place : {false, true}) {
        if (!can_be_cut(algorithm)) continue;
        const DType dtype = all_dtypes[++turn % std::size(all_dtypes)];
        const std::int64_t each = 3000 / size_of(dtype);
        const Problem problem = problem_for(c, algorithm.what, 7 * each + more, turn, in_place);
        if (!fits(algorithm, problem)) continue;
        c.choose(algorithm.what, algorithm.name, turn % 5 == 0 ? 20 : 1 + static_cast<int>(turn % 2));
        const bool symmetric = turn / 3 % 3 == 0 ? false : (c.rank() + static_cast<int>(turn)) % 2 == 0;
        const Trial trial(problem, dtype, static_cast<Redop>(turn % std::size(redop_names)), host.memory(symmetric));
        for (int again = 0; again < (in_place ? 1 : 2); ++again) c.run(trial.call());
        if (wrong.empty() && !trial.trouble().empty()) wrong = algorithm.name + (": " + trial.trouble());
      }
  REQUIRE_ALL(wrong == "");
}

TEST_CASE("a slice may be one element", "[spmd]") {
  Host host(1);
  for (const bool in_place : {false, true}) {
    const Trial trial(problem_for(host.c, Collective::all_reduce, 2000, 0, in_place), DType::f64, Redop::sum, host.ordinary);
    host.c.run(trial.call());
    REQUIRE_ALL(trial.trouble() == "");
  }
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

TEST_CASE("several calls in slices can be in flight at once, also together with other calls", "[spmd]") {
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

TEST_CASE("ordinary buffers take no more symmetric memory than a slice", "[spmd]") {
  constexpr std::int64_t slice = 1 << 16;
  Host host(slice);
  host.c.choose(Collective::all_reduce, "direct");  // needs no workspace
  const auto taken = [&] { return host.reach().memory().ledger().current(Category::comm); };
  std::vector<float> x(20 * slice / 4, 1), y(x.size());
  const auto whole = [](std::vector<float>& v) { return Slice{v.data(), static_cast<std::int64_t>(v.size()), DType::f32}; };
  host.c.barrier();
  const std::int64_t before = taken();
  host.c.all_reduce(whole(x), whole(y));
  REQUIRE_ALL(taken() - before == (host.c.size() > 1 ? 2 * slice : 0));
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
