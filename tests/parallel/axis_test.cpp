// What strategies may rely on of an axis: alone it gives what it gets, a call under way keeps its tensors, and goes on while layers compute.
#include "tests/parallel/layouts.hpp"

namespace chorale {
namespace {

Tensor ones(Allocator& memory, std::int64_t count) {
  const Tensor x(memory, {count}, DType::f32, Category::workspace);
  std::ranges::fill(x.values<float>(), 1.0F);
  return x;
}

TEST_CASE("alone, every collective of an axis gives what it gets") {
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

TEST_CASE("a call under way keeps its tensors", "[threads]") {
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
          if (me.rank() == 0) me.check(held == 4000, "{} bytes are held for a call that cannot be over", held);
          sum = std::move(other);
          if (me.rank() == 0) me.barrier();
          sum.wait();
          me.check(ledger.current(Category::workspace) == 0, "a call that is over still holds its tensors");
        }) == "");
}

}  // namespace
}  // namespace chorale
