// Tests `chorale plan --hosts`. The plan must choose the same order of axes and the same backends as a run on these hosts.
// For each pipeline stage, the table must show the sum of the bytes that the ranks of the stage send.
#include "experiments/plan/hosts.hpp"

#include "parallel/plan/order.hpp"
#include "src/base/text.hpp"
#include "tests/refused.hpp"

namespace chorale::plan {
namespace {

PlanRequest request_for(const char* word, std::int64_t global_batch, std::int64_t ranks = 4) {
  PlanRequest request{.options = {.shape = {ModelFamily::gpt2, 4, 4, 4, 32, 64, 16, 64}},
                      .layout = parse_layout(word, ranks)};
  request.options.batch.global = global_batch;
  request.options.batch.micro = request.layout.stages() > 1 ? 1 : global_batch / request.layout.replicas();
  request.backends = {{"", "auto"}};
  return request;
}

TEST_CASE("a plan for hosts has the order of axes that a run there would choose") {
  const Topology two = Topology::of_counts({2, 2});
  const Hosts hosts(two);
  for (const char* word : {"dp2.tp2", "dp2.pp2", "tp2.pp2", "dp2.tp2.tp-dp", "dp4"})
    for (const std::int64_t batch : {4, 64}) {  // with a larger batch, activations grow, but gradients do not
      PlanRequest request = request_for(word, batch);
      const PlanRequest before = request;
      const std::string why = hosts.place(request);
      INFO(word << ", " << batch);
      CHECK(request.hosts == two.host_of);
      if (!before.layout.order.empty()) {
        CHECK((why.empty() && request.layout.order == before.layout.order));
        continue;
      }
      const WhyNot none = [](const Layout&) { return ""; };
      const OrderChoice run = cheapest_order(before.layout, none, sent_in_a_step(before), two);
      CHECK(why == run.why);
      CHECK(request.layout.order == run.order);
    }
  PlanRequest few = request_for("dp2.tp2", 4);
  CHECK_THAT(hosts.place(few), says("order: tp,dp, because dp would send "));
}

TEST_CASE("a plan for hosts is refused if an axis is out of its backend's reach") {
  PlanRequest request = request_for("dp4", 4);
  request.backends = {{"", "shm"}};
  const Hosts two(Topology::of_counts({2, 2})), one(Topology::of_counts({4}));
  two.place(request);
  CHECK_FALSE(two.suit(request));
  CHECK_THAT(test::refused([&] { two.require_suited(request); }),
             says("shm connects the ranks of one host, and dp crosses hosts"));
  one.place(request);
  CHECK(one.suit(request));
  CHECK(test::refused([&] { one.require_suited(request); }) == "accepted");
}

TEST_CASE("the table of a plan for hosts adds up what the ranks of each stage send") {
  const Hosts hosts(Topology::of_counts({2, 2}));
  PlanRequest request = request_for("dp2.pp2.pp-dp", 4);
  request.backends = {{"", "mpi"}};
  request.algorithms = {{"", "ring"}};
  hosts.place(request);
  std::int64_t of_dp = 0, of_pp = 0;  // bytes that stage 1 (ranks 2 and 3) sends
  for (const int rank : {2, 3}) {
    const RankPlan plan = plan_rank(request, rank);
    for (const Account::Entry& entry : plan.axes.at("dp").entries) of_dp += entry.bytes;
    for (const Account::Entry& entry : plan.axes.at("pp").entries) of_pp += entry.bytes;
  }
  const auto traffic = [](const Hosts& on, const PlanRequest& of, const std::string& format) {
    Document document(format);
    on.add_traffic(document, of, Wording(format));
    return document.print();
  };
  const std::string csv = traffic(hosts, request, "csv");
  CHECK_THAT(csv, says(fmt::format("1,dp,{},0\n", of_dp)));
  CHECK_THAT(csv, says(fmt::format("1,pp,{0},{0}\n", of_pp)));
  CHECK_THAT(traffic(hosts, request, "text"), says(" cross hosts (n0: 0-1, n1: 2-3)\n"));
  PlanRequest alone = request_for("dp1", 4, 1);
  alone.hosts = {0};
  CHECK(traffic(Hosts(Topology::of_counts({1})), alone, "text").empty());
}

}  // namespace
}  // namespace chorale::plan
