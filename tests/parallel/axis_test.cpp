// Checks what strategies rely on when they call collectives along an axis of the mesh. With one rank, a collective copies
// its input. A call in flight keeps its tensors alive and makes progress while layers compute.
#include <fmt/format.h>

#include "tests/parallel/layouts.hpp"

namespace chorale {
namespace {

Tensor ones(Allocator& memory, std::int64_t count) {
  const Tensor x(memory, {count}, DType::f32, Category::workspace);
  std::ranges::fill(x.values<float>(), 1.0F);
  return x;
}

TEST_CASE("with one rank, every collective of an axis copies its input") {
  HostMemory host;
  Ledger ledger;
  Allocator memory(host, ledger);
  const Mesh mesh;
  Axis& axis = mesh.data();
  const Tensor input = ones(memory, 5);
  const auto given = [&](auto call) {
    const Tensor output(memory, {5}, DType::f32, Category::workspace);
    std::ranges::fill(output.values<float>(), 0.0F);
    call(output);
    return std::ranges::equal(output.values<float>(), input.values<float>());
  };
  CHECK(given([&](const Tensor& output) { axis.all_gather(input, output); }));
  CHECK(given([&](const Tensor& output) { axis.reduce_scatter(input, output); }));
  CHECK(given([&](const Tensor& output) { axis.start_all_gather(input, output).wait(); }));
  CHECK(given([&](const Tensor& output) { axis.start_reduce_scatter(input, output).wait(); }));
  CHECK(axis.account().entries == Account{}.entries);
}

TEST_CASE("a call in flight keeps its tensors alive", "[threads]") {
  const Layout layout = parse_layout("dp2", 0);
  ThreadWorld world(2);
  CHECK(test::on_threads(2, [&](test::ThreadRank& me) {
          SystemClock clock;
          const Worlds worlds(open_world(world.transport(me.rank()), clock));
          const Mesh mesh(layout, worlds, {});
          Ledger ledger;
          Allocator memory(worlds.memory(), ledger);
          if (me.rank() == 1) me.barrier();
          Axis::Pending sum, other = mesh.data().start_all_reduce(ones(memory, 1000));
          const std::int64_t held = ledger.current(Category::workspace);
          if (me.rank() == 0) me.check(held == 4000, "{} bytes are held for a call that cannot have finished", held);
          sum = std::move(other);
          if (me.rank() == 0) me.barrier();
          sum.wait();
          me.check(ledger.current(Category::workspace) == 0, "a finished call still holds its tensors");
        }) == "");
}

// Rank 0 starts a sum and trains. Rank 1 waits for the sum before it trains. The sum needs two more messages from rank 0,
// which rank 0 must send while it computes.
TEST_CASE("a call in flight progresses while a rank computes its layers", "[threads]") {
  const Layout layout = parse_layout("dp2", 0);
  TrainingOptions options = test::options_for("fast", layout);
  options.micro_batch = 1;
  ThreadWorld world(2);
  std::atomic<int> begun = 0, over = 0;
  CHECK(test::on_threads(2, [&](test::ThreadRank& me) {
          SystemClock clock;
          const Worlds worlds(open_world(world.transport(me.rank()), clock));
          Mesh mesh(layout, worlds, {{"", "ring"}});
          test::Run run(options, Mesh(layout, worlds, {}), worlds.memory());
          Ledger ledger;
          Allocator memory(worlds.memory(), ledger);
          const auto comes = [&](const std::atomic<int>& ranks, int wanted) {
            for (const double start = clock.seconds(); ranks < wanted && clock.seconds() < start + 300;) clock.sleep(1e-3);
            return ranks == wanted;
          };
          if (me.rank() == 1) comes(begun, 1);
          Axis::Pending sum = mesh.data().start_all_reduce(ones(memory, 8));
          ++begun;
          bool went_on = false;
          if (me.rank() == 1) {
            sum.wait();
            ++over;
          }
          run.training.step(
              [&, micro_batch = 0](std::int64_t first, std::int64_t samples, auto inputs, auto targets) mutable {
                if (me.rank() == 0 && micro_batch == 0) comes(begun, 2);
                if (me.rank() == 0 && micro_batch == 1) went_on = comes(over, 1);
                ++micro_batch;
                run.read(first, samples, inputs, targets);
              });
          if (me.rank() == 0) me.check(went_on, "the sum made no progress while micro-batch 0 was computed");
          sum.wait();
        }) == "");
}

// Makes calls of `count` elements per rank on axis `a`, in place and out of place. Returns the axis's account: its calls
// and the bytes sent. All blocks have the same size, as in the calls of strategies.
Account account_of(Axis& a, Allocator& memory, std::int64_t count) {
  const auto vector = [&](std::int64_t n) { return Tensor(memory, {n}, DType::f32, Category::workspace); };
  const Tensor whole = vector(count * a.size()), block = vector(count);
  const Tensor own = whole.narrow(a.rank() * count, count);
  for (const Tensor& x : {whole, block}) clear(x);
  a.all_reduce(whole);
  a.all_reduce(whole, Redop::max);
  a.broadcast(whole, a.size() - 1);
  a.all_gather(block, whole);
  a.all_gather(own, whole);
  a.reduce_scatter(whole, block);
  a.start_reduce_scatter(whole, own).wait();
  return a.account();
}

TEST_CASE("a planned axis, which sends nothing, counts the bytes that a real axis sends", "[threads]") {
  std::vector<std::string> algorithms{"auto"};
  for (const Algorithm& row : all_algorithms())
    if (row.what == Collective::all_reduce) algorithms.emplace_back(row.name);
  const std::vector<std::vector<int>> places{{0, 0}, {0, 1}, {0, 0, 0}, {0, 1, 0}, {0, 0, 0, 0}, {0, 1, 0, 1}, {0, 1, 1, 2}};
  for (const std::vector<int>& hosts : places)
    for (const std::string& algorithm : algorithms)
      for (const std::int64_t count : {1, 7, 4096}) {
        const int size = static_cast<int>(hosts.size());
        const bool fits_all = std::ranges::all_of(all_algorithms(), [&](const Algorithm& row) {
          return row.name != algorithm || fits(row, Problem::even(row.what, count * size, size));
        });
        if (!fits_all) continue;
        INFO(algorithm << " on hosts " << fmt::format("{}", fmt::join(hosts, ",")) << ", " << count << " elements each");
        const Layout layout = parse_layout(fmt::format("dp{}", size), 0);
        ThreadWorld world(size);
        CHECK(test::on_threads(size, [&](test::ThreadRank& me) {
                SystemClock clock;
                Communicator placed = open_world(world.transport(me.rank()), clock);
                placed.pretend_hosts(hosts);
                const Worlds worlds(std::move(placed));
                const Mesh real(layout, worlds, {{"", algorithm}});
                const Mesh pretended = Mesh::pretended(layout, me.rank(), {{"", "threads"}}, {{"", algorithm}},
                                                       std::make_shared<const Selector>(), hosts);
                PhantomMemory phantom;
                Ledger ledger;
                Allocator memory(worlds.memory(), ledger), nothing(phantom, ledger);
                const Account sent = account_of(real.data(), memory, count);
                const Account foreseen = account_of(pretended.data(), nothing, count);
                for (std::size_t i = 0; i < operations; ++i)
                  me.check(sent.entries[i] == foreseen.entries[i], "{}: {} bytes were sent, {} expected", operation_name(i),
                           sent.entries[i].bytes, foreseen.entries[i].bytes);
              }) == "");
      }
}

}  // namespace
}  // namespace chorale
