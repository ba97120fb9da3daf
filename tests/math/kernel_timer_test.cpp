#include "src/math/kernel_timer.hpp"

#include "src/math/activation.hpp"
#include "src/math/products.hpp"
#include "tests/catch.hpp"
#include "tests/math/checks.hpp"

namespace chorale {
namespace {

class Notes final : public Meter {
 public:
  void note(const KernelWork& kernel) override { all.push_back(kernel); }
  void begins(const StepPart&) override {}
  int copies(std::int64_t, bool) override { return -1; }
  void waits_for_copy(int) override {}
  std::vector<KernelWork> all;
};

}  // namespace

TEST_CASE("a kernel is charged for its own time, not for that of the kernels that it calls") {
  VirtualClock clock;
  KernelTable timer(clock);
  const Queue queue{.timer = &timer};
  for (int call = 0; call < 2; ++call) {
    const Kernel outer(queue, "outer", Kernel::on_bytes(100), false);
    clock.sleep(1);
    for (int inner_call = 0; inner_call < 3; ++inner_call) {
      const Kernel inner(queue, "inner", {.work = Work::product, .amount = 7, .bytes = 10, .m = 2, .n = 3, .k = 4}, false);
      clock.sleep(2);
    }
    clock.sleep(4);
  }
  clock.sleep(8);
  REQUIRE(timer.rows().size() == 2);
  const KernelTable::Row outer = timer.rows().at({"outer"}), inner = timer.rows().at({"inner", 2, 3, 4, 1});
  CHECK((outer.calls == 2 && outer.seconds == 10 && outer.bytes == 200 && outer.flops == 0));
  CHECK((inner.calls == 6 && inner.seconds == 12 && inner.bytes == 60 && inner.flops == 42));
  timer.clear();
  CHECK(timer.rows().empty());
}

TEST_CASE("kernels of different shapes have their own rows, with the flops and bytes of their tensors") {
  Desk desk;
  SystemClock clock;
  KernelTable timer(clock);
  const Queue queue{.timer = &timer};
  const Tensor x = desk.random({6, 8}, DType::f32), wide = desk.random({8, 16}, DType::f32);
  const Tensor square = desk.random({8, 8}, DType::f32), y = desk.empty({6, 16}, DType::f32),
               z = desk.empty({6, 8}, DType::f32);
  Products products;
  products.product(x, wide, false, nullptr, y, queue);
  products.product(x, square, false, nullptr, z, queue);
  products.product(x, square, false, nullptr, z, queue);
  gelu_forward(x, z, queue);
  REQUIRE(timer.rows().size() == 3);
  const KernelTable::Row once = timer.rows().at({"product", 6, 16, 8, 1}), twice = timer.rows().at({"product", 6, 8, 8, 1});
  CHECK((once.calls == 1 && once.flops == 2 * 6 * 16 * 8 && once.bytes == 4 * (6 * 8 + 8 * 16 + 6 * 16)));
  CHECK((twice.calls == 2 && twice.flops == 2 * 2 * 6 * 8 * 8 && twice.seconds > 0));
  CHECK((timer.rows().at({"GELU"}).bytes == 2 * 4 * 6 * 8 && timer.rows().at({"GELU"}).flops == 0));
}

TEST_CASE("a kernel on a phantom tensor is noted, not timed") {
  VirtualClock clock;
  KernelTable timer(clock);
  Notes notes;
  PhantomMemory memory;
  Ledger ledger;
  Allocator phantoms(memory, ledger);
  Desk desk;
  const Queue queue{.meter = &notes, .timer = &timer};
  const Tensor real = desk.random({3, 5}, DType::f32), phantom(phantoms, {3, 5}, DType::f32, Category::workspace);
  gelu_forward(phantom, real, queue);
  CHECK(timer.rows().empty());
  REQUIRE(notes.all.size() == 1);
  CHECK(notes.all[0].bytes == 2 * 4 * 3 * 5);
  gelu_forward(real, real, queue);
  CHECK((timer.rows().size() == 1 && notes.all.size() == 1));
}

}  // namespace chorale
