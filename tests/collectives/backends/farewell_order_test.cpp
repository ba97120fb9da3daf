// After a failed call, messages can still arrive in memory that the call's operation uses. So the operation must be
// destroyed before this memory is freed.
#include "collectives/backends/message/operation.hpp"
#include "collectives/call/staged_operation.hpp"
#include "tests/collectives/backends/messages.hpp"

namespace chorale::test {
namespace {

using Order = std::vector<std::string>;

class Lender final : public Memory {
 public:
  explicit Lender(Order& order) : order_(order) {}
  Device device() const override { return {}; }
  void* take(std::int64_t bytes) override { return host_.take(bytes); }
  void give_back(void* place, std::int64_t bytes) noexcept override {
    order_.push_back("memory");
    host_.give_back(place, bytes);
  }

 private:
  HostMemory host_;
  Order& order_;
};

struct Inner final : Operation {
  explicit Inner(Order& o) : order(o) {}
  ~Inner() override { order.push_back("operation"); }
  void start(const Run&) override {}
  bool progress() override { return false; }
  Order& order;
};

struct Inners final : Group {
  explicit Inners(Order& o) : order(o) {}
  std::unique_ptr<Operation> prepare(const Plan&) override { return std::make_unique<Inner>(order); }
  std::unique_ptr<Group> pair(int, int) override { return nullptr; }
  void poison(const std::string&) noexcept override {}
  Order& order;
};

struct Silent final : Messenger {
  explicit Silent(Order& o) : order(o) {}
  ~Silent() override { order.push_back("operation"); }
  void start(const Run&) override {}
  bool post(int, void*) override { return false; }
  std::span<const int> progress() override { return {}; }
  Order& order;
};

Plan sum_of(int size) {
  Plan plan{.algorithm = &named(Collective::all_reduce, "direct")};
  plan.problem = Problem::even(Collective::all_reduce, 100, size);
  return plan;
}

}  // namespace

TEST_CASE("host buffers of a staged call outlive its operation") {
  Order order;
  Lender memory(order);
  Ledger ledger;
  Inners group(order);
  { const auto call = staged_operation(group, sum_of(2), std::make_shared<HostMemory>(), {memory, ledger}); }
  CHECK(order == Order{"operation", "memory"});
}

TEST_CASE("the workspace of a call over messages outlives its messages", "[spmd][messages]") {
  Order order;
  Lender memory(order);
  Ledger ledger;
  ControlEndpoint control(world().world());
  CallAgreement agreement(control, everybody(control));
  const Plan plan = sum_of(world().size() + 1);
  {
    const MessageOperation call(plan, MessagePlan(plan), std::make_unique<Silent>(order), CallWatch(agreement, 0, {}),
                                {memory, ledger}, {});
  }
  REQUIRE_ALL((order == Order{"operation", "memory"}));
}

}  // namespace chorale::test
