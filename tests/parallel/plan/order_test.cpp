// Tests the order of a layout's axes. Covers the groups of ranks along each axis, and the cheapest order for given hosts.
// Training results must not depend on the order.
#include "parallel/plan/order.hpp"

#include "parallel/mesh/placement.hpp"
#include "tests/catch.hpp"
#include "tests/parallel/layouts.hpp"

namespace chorale {
namespace {

std::vector<int> group_of(const Layout& layout, const std::string& axis, int rank) {
  for (const RankGroup& group : groups_of(layout))
    if (group.name == axis && std::ranges::count(group.ranks, rank)) return group.ranks;
  return {};
}

TEST_CASE("the innermost axis has neighboring ranks") {
  for (const AxisOrder& order : orders_of(parse_layout("dp2.tp3.pp2", 0))) {
    Layout layout = parse_layout("dp2.tp3.pp2", 0);
    layout.order = order;
    INFO(to_string(layout));
    CHECK(group_of(layout, order[2], 0).back() == layout[order[2]] - 1);
    CHECK(group_of(layout, order[0], 0).back() == 12 - 12 / layout[order[0]]);
    for (int rank = 0; rank < 12; ++rank) {
      const Coordinates place = coordinates_of(layout, rank);
      const auto on = [&](const std::string& axis) { return place[layout.axes->row_of(axis)]; };
      CHECK((on(order[0]) * layout[order[1]] + on(order[1])) * layout[order[2]] + on(order[2]) == rank);
    }
    for (const std::int64_t stage : {0, 1}) {
      Coordinates last{};
      last[layout.axes->row_of("tp")] = 2;
      last[layout.axes->row_of("pp")] = stage;
      CHECK(coordinates_of(layout, rank_of_stage(layout, stage, true)) == last);
    }
  }
}

TEST_CASE("the orders of a layout are those of its axes with several ranks, the usual one first") {
  CHECK(orders_of(parse_layout("dp2.tp2.tp-dp", 0)) == std::vector<AxisOrder>{{"dp", "tp"}, {"tp", "dp"}});
  CHECK(orders_of(parse_layout("dp4", 0)) == std::vector<AxisOrder>{{"dp"}});
  const auto six = orders_of(parse_layout("dp2.tp2.pp2", 0));
  CHECK(six.size() == 6);
  CHECK(six.front() == AxisOrder{"pp", "dp", "tp"});
}

TEST_CASE("exact numerics have the same bits in every order of the axes", "[threads]") {
  const test::Seen expected = test::train_alone(test::options_for("exact", {}));
  for (const char* word : {"dp2.tp2.pp2.z1.sp", "dp3.tp2.z3", "dp2.pp2.v2.z2", "dp1.tp3.pp2.zb-h1", "dp2.tp2.sp"})
    for (const AxisOrder& order : orders_of(parse_layout(word, 0))) {
      Layout layout = parse_layout(word, 0);
      layout.order = order;
      INFO(to_string(layout));
      CHECK(test::on_thread_mesh(layout, [&](Mesh mesh, Memory& memory) {
              return difference(expected, test::train(test::options_for("exact", layout), std::move(mesh), memory));
            }) == "");
    }
}

TEST_CASE("a group is priced as a ring of which only pairs on two hosts count") {
  const Topology two = Topology::of_counts({2, 2});
  const SentByGroup sent{{"dp", 10}, {"tp", 1000}, {"world", 1}};
  using Sent = SentByGroup;
  CHECK(sent_across_hosts(parse_layout("dp2.tp2", 0), sent, two) == Sent{{"dp", 40}, {"world", 2}});
  CHECK(sent_across_hosts(parse_layout("dp2.tp2.tp-dp", 0), sent, two) == Sent{{"tp", 4000}, {"world", 2}});
  CHECK(sent_across_hosts(parse_layout("dp2.tp2", 0), sent, Topology::of_counts({4})).empty());
  CHECK(sent_across_hosts(parse_layout("dp6", 0), sent, Topology::of_counts({3, 1, 2})) == Sent{{"dp", 30}, {"world", 3}});
}

TEST_CASE("on several hosts the cheapest order is the one that sends the fewest bytes between them") {
  const WhyNot any = [](const Layout&) { return ""; };
  const auto choose = [&](const char* word, const SentByGroup& sent, const Topology& topology) {
    return cheapest_order(parse_layout(word, 0), any, sent, topology);
  };
  const Topology two = Topology::of_counts({2, 2});
  CHECK(choose("dp2.tp2", {{"dp", 10}, {"tp", 1000}}, two).order.empty());
  const OrderChoice swapped = choose("dp2.tp2", {{"dp", 2048}, {"tp", 1024}}, two);
  CHECK(swapped.order == AxisOrder{"tp", "dp"});
  CHECK(swapped.why ==
        "order: tp,dp, because dp would send 8.0 KiB of a step across hosts in the usual order; now 4.0 KiB cross in all");
  CHECK(choose("dp2.tp2", {{"dp", 2048}, {"tp", 1024}}, Topology::of_counts({4})).order.empty());
  CHECK(choose("dp2.tp2", {{"dp", 5}, {"tp", 5}}, two).order.empty());  // both orders cost the same
  CHECK(choose("dp4", {{"dp", 5}}, two).order.empty());
  // These ranks are placed round robin, so the order tp,dp puts tensor ranks on one host.
  const Topology dealt{{0, 1, 0, 1}, {"n0", "n1"}};
  CHECK(choose("dp2.tp2", {{"dp", 10}, {"tp", 1000}}, dealt).order == AxisOrder{"tp", "dp"});
  CHECK(choose("dp2.tp2.pp2", {{"dp", 9}, {"tp", 1}, {"pp", 5}}, Topology::of_counts({2, 2, 2, 2})).order.back() == "dp");
}

TEST_CASE("the cheapest order keeps each axis within reach of its backend") {
  const Topology two = Topology::of_counts({2, 2});
  const WhyNot near = [&](const Layout& layout) {
    return why_not_on(two, layout, {{"", "mpi"}, {"dp", "shm"}}, test::options_for("fast", layout));
  };
  const OrderChoice choice = cheapest_order(parse_layout("dp2.tp2", 0), near, {{"dp", 1}, {"tp", 1000}}, two);
  CHECK(choice.order == AxisOrder{"tp", "dp"});
  CHECK(choice.why == "order: tp,dp, because in the usual order an axis would leave the reach of its backend");
  CHECK(cheapest_order(parse_layout("dp4", 0), near, {{"dp", 1}}, two).order.empty());
}

TEST_CASE("what a step sends comes from the plan") {
  const Layout layout = parse_layout("dp2.pp2", 0);
  const PlanRequest request{.options = test::options_for("fast", layout), .layout = layout};
  const SentByGroup sent = sent_in_a_step(request);
  double expected = 0;
  for (const int stage : {0, 1}) {
    const RankPlan plan = plan_rank(request, rank_of_stage(layout, stage));
    for (const Account::Entry& entry : plan.axes.at("dp").entries) expected += static_cast<double>(entry.bytes) / 2;
  }
  CHECK(expected > 0);
  CHECK(sent.at("dp") == expected);
}

TEST_CASE("what a step sends is a mean over the stages that send it: only two have a copy of a tied embedding") {
  const Layout layout = parse_layout("dp1.pp4", 0);
  const PlanRequest request{.options = test::options_for("fast", layout), .layout = layout};
  REQUIRE(request.options.shape.tied);
  const auto bytes_of = [&](const char* group, int stage) {
    double bytes = 0;
    const Accounts accounts = plan_rank(request, rank_of_stage(layout, stage)).axes;
    if (accounts.contains(group))
      for (const Account::Entry& entry : accounts.at(group).entries) bytes += static_cast<double>(entry.bytes);
    return bytes;
  };
  const SentByGroup sent = sent_in_a_step(request);
  CHECK((bytes_of("ends", 0) > 0 && bytes_of("ends", 1) == 0));
  CHECK(sent.at("ends") == (bytes_of("ends", 0) + bytes_of("ends", 3)) / 2);
  CHECK(sent.at("pp") == (bytes_of("pp", 0) + 2 * bytes_of("pp", 1) + bytes_of("pp", 3)) / 4);
}

}  // namespace
}  // namespace chorale
