#include "collectives/call/communicator.hpp"

#include <chorale/algorithm.hpp>
#include "collectives/backends/backends.hpp"
#include "collectives/backends/mapped/transport.hpp"
#include "collectives/backends/threads.hpp"
#include "tests/collectives/expectation.hpp"
#include "tests/collectives/worlds.hpp"
#include "tests/sample.hpp"

using namespace chorale;
using namespace chorale::test;

namespace {

// Runs every algorithm on odd lengths, in place and out of place, with alternating types and operators. Runs only every
// `stride`-th of these cases.
std::string try_all(Communicator& c, Allocator& memory, int stride) {
  const int p = c.size();
  std::size_t turn = 0;
  Sample third(c.backend() == "threads" ? 1 : 3);
  for (const Algorithm& algorithm : all_algorithms())
    for (const std::int64_t count : {std::int64_t{0}, std::int64_t{1}, std::int64_t{p - 1}, std::int64_t{2 * p + 1},
                                     std::int64_t{1000}, std::int64_t{40000}})
      for (const bool in_place : {false, true}) {
        if (static_cast<int>(++turn) % stride || !third.takes()) continue;
        const bool blocks_only = algorithm.what == Collective::gather || algorithm.what == Collective::scatter;
        if (blocks_only && in_place) continue;
        const bool one_buffer = in_place || algorithm.what == Collective::broadcast;
        Problem problem =
            Problem::even(algorithm.what, blocks_only ? count / p * p : count, p, static_cast<int>(turn) % p, one_buffer);
        if (problem.blocks.total() == 0) problem.in_place = false;
        problem.rank = c.rank();
        if (!fits(algorithm, problem) || algorithm.what == Collective::barrier) continue;
        const DType dtype = all_dtypes[turn % std::size(all_dtypes)];
        const Redop op = static_cast<Redop>(turn % std::size(redop_names));
        c.choose(algorithm.what, algorithm.name, 1 + static_cast<int>(turn / 7 % 3));
        const Trial trial(problem, dtype, op, memory);
        c.run(trial.call());
        if (const std::string trouble = trial.trouble(); !trouble.empty()) return algorithm.name + (": " + trouble);
      }
  return "";
}

}  // namespace

TEST_CASE("every algorithm gives the right result on threads", "[threads]") {
  for (const int size : {1, 2, 3, 4, 5, 8}) {
    ThreadWorld world(size);
    const std::string trouble = on_threads(size, [&](ThreadRank& me) {
      SystemClock clock;
      Communicator c = open_world(world.transport(me.rank()), clock);
      const std::string wrong = try_all(c, c.allocator(), 1);
      me.check(wrong.empty(), "{}", wrong);
    });
    REQUIRE(trouble == "");
  }
}

TEST_CASE("every algorithm gives the right result on every backend", "[spmd][hosts][many]") {
  SystemClock clock;
  HostMemory heap;
  Ledger ledger;
  Allocator ordinary(heap, ledger);
  for (const Backend& backend : all_backends()) {
    if (!joins_all(backend)) continue;
    INFO(backend.name);
    Communicator c = open_world(backend.name, world(), clock);
    const std::string symmetric = try_all(c, c.allocator(), c.size() > 4 ? 3 : 1);
    REQUIRE_ALL(symmetric == "");
    const std::string wrong = try_all(c, ordinary, c.size() > 4 ? 5 : 2);
    REQUIRE_ALL(wrong == "");
    if (auto* mapped = dynamic_cast<mapped::MappedTransport*>(&c.transport())) {
      mapped->reach().staged_up_to = 0;  // the kernel copies all data from ordinary buffers that do not fit into cells
      c.choose("auto");                  // discards prepared operations
      const std::string copied = try_all(c, ordinary, c.size() > 4 ? 5 : 2);
      REQUIRE_ALL(copied == "");
      mapped->reach().staged_up_to = 1 << 30;
      c.choose("auto");
      const std::string staged = try_all(c, ordinary, c.size() > 4 ? 5 : 2);
      REQUIRE_ALL(staged == "");
      mapped->reach().staged_up_to = 2000;  // short messages are staged, long messages are copied by the kernel
      c.choose("auto");
      const std::string mixed = try_all(c, c.rank() % 2 == 0 ? ordinary : c.allocator(), c.size() > 4 ? 5 : 2);
      REQUIRE_ALL(mixed == "");
    }
  }
}

namespace {

// Makes the mistake on every backend. Each backend gets a new world, because a group is no longer usable after mismatched
// calls. Every rank must soon get an error that contains `words` and names a rank.
template <class Mistake>
void every_rank_is_told(const char* words, Mistake&& mistake) {
  SystemClock clock;
  for (const Backend& backend : all_backends()) {
    if (!joins_all(backend)) continue;
    Communicator c = open_world(backend.name, world(), clock);
    std::vector<float> x(64, 1), y(64);
    std::string said = "nothing";
    const double started = clock.seconds();
    try {
      mistake(c, Slice{x.data(), 64, DType::f32}, Slice{y.data(), 64, DType::f32});
      c.barrier();  // if the wrong call returned without an error, the barrier throws it
    } catch (const std::exception& error) {
      said = error.what();
    }
    INFO(backend.name << ": " << said);
    REQUIRE_ALL(said.find(words) != std::string::npos);
    REQUIRE_ALL(said.find("rank") != std::string::npos);
    REQUIRE_ALL(clock.seconds() - started < 10);
  }
}

}  // namespace

TEST_CASE("calls that differ between ranks are an error on every rank", "[spmd][hosts][many]") {
  if (world().size() == 1) return;
  const bool odd_one = world().rank() == world().size() - 1;
  every_rank_is_told("all_reduce", [&](Communicator& c, Slice x, Slice y) {
    if (odd_one) x.count = y.count = 63;
    c.all_reduce(x, y);
  });
  every_rank_is_told("all_reduce",
                     [&](Communicator& c, Slice x, Slice y) { c.all_reduce(x, y, odd_one ? Redop::max : Redop::sum); });
  every_rank_is_told("all_reduce", [&](Communicator& c, Slice x, Slice y) {
    if (odd_one) x.dtype = y.dtype = DType::i32;
    c.all_reduce(x, y);
  });
  every_rank_is_told("broadcast", [&](Communicator& c, Slice x, Slice) { c.broadcast(x, odd_one ? 1 : 0); });
  every_rank_is_told("", [&](Communicator& c, Slice x, Slice y) {
    if (odd_one)
      c.barrier();
    else
      c.all_reduce(x, y);
  });
  every_rank_is_told("all_reduce", [&](Communicator& c, Slice x, Slice y) {
    if (odd_one) c.choose(Collective::all_reduce, "ring");
    c.all_reduce(x, y);
  });
}

TEST_CASE("a mistake of one rank is told to all", "[spmd][hosts]") {
  const bool odd_one = world().rank() == world().size() - 1;
  every_rank_is_told("root 99 is not one of", [&](Communicator& c, Slice x, Slice) { c.broadcast(x, odd_one ? 99 : 0); });
  every_rank_is_told("the output has 3 elements", [&](Communicator& c, Slice x, Slice y) {
    if (odd_one) y.count = 3;
    c.all_reduce(x, y);
  });
  every_rank_is_told("input is f32, output is f64", [&](Communicator& c, Slice x, Slice y) {
    if (odd_one) y.dtype = DType::f64;
    c.all_reduce(x, y);
  });
}

TEST_CASE("the first ranks of a launch can form a separate world on every backend", "[spmd]") {
  SystemClock clock;
  for (const Backend& backend : all_backends()) {
    if (!joins_all(backend)) continue;
    const int ranks = std::max(1, world().size() - 1);
    const mpi::Runtime part(world(), world().rank() < ranks ? 0 : -1);
    REQUIRE_ALL((part.rank() < 0) == (world().rank() >= ranks));
    float sum = 1;
    if (part.rank() >= 0) {
      Communicator c = open_world(backend.name, part, clock);
      c.all_reduce({&sum, 1, DType::f32});
    }
    mpi::sleep_until_all(world().world(), clock);
    REQUIRE_ALL(sum == static_cast<float>(part.rank() >= 0 ? ranks : 1));
  }
}
