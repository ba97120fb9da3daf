// A plan against what was measured: calls and bytes by axis, bytes by category, as integers, and ring against the closed forms.
#include "parallel/plan.hpp"

#include "collectives/algorithms.hpp"
#include "tests/catch.hpp"
#include "tests/collectives/worlds.hpp"

namespace chorale {
namespace {

PlanRequest request_for(const Layout& layout, const char* algorithm, DType compute = DType::f32) {
  PlanRequest request{.options = {.shape = {"gpt2", 4, 6, 6, 48, 96, 12, 61}}, .layout = layout};
  request.options.global_batch = 12;
  request.options.micro_batch = layout.pipeline > 1 ? 1 : 12 / layout.data;
  request.options.bucket_bytes = 20000;
  request.options.compute = compute;
  request.backends = {{"", "threads"}};
  request.algorithms = {{"", algorithm}};
  return request;
}

void read_nothing(std::int64_t, std::int64_t, std::span<std::int32_t> inputs, std::span<std::int32_t> targets) {
  std::fill(inputs.begin(), inputs.end(), 1);
  std::fill(targets.begin(), targets.end(), 2);
}

std::string difference(const RankPlan& plan, const RankPlan& seen, bool messages_stay) {
  for (const auto& [axis, account] : plan.axes)
    for (std::size_t i = 0; i < operations; ++i) {
      const Account::Entry &a = account.entries[i], &b = seen.axes.at(axis).entries[i];
      if (!(a == b))
        return fmt::format("{} {}: planned {} calls of {} bytes, made {} of {}", axis, operation_name(i), a.calls, a.bytes,
                           b.calls, b.bytes);
    }
  for (std::size_t c = 0; c < categories; ++c) {
    if (plan.held[c] != seen.held[c])
      return fmt::format("{}: planned to hold {} bytes, held {}", category_names[c], plan.held[c], seen.held[c]);
    const bool more = messages_stay && c == static_cast<std::size_t>(Category::activations);
    if (more ? seen.peak[c] < plan.peak[c] : seen.peak[c] != plan.peak[c])
      return fmt::format("{}: planned {} bytes at most, had {}", category_names[c], plan.peak[c], seen.peak[c]);
  }
  return "";
}

void planned_is_measured(const PlanRequest& request) {
  INFO(to_string(request.layout) << " by " << request.algorithms.at(""));
  const int ranks = static_cast<int>(request.layout.ranks());
  ThreadWorld world(ranks);
  CHECK(test::on_threads(ranks, [&](test::ThreadRank& me) {
          SystemClock clock;
          const Worlds worlds(open_world(world.transport(me.rank()), clock));
          Training training(request.options, Mesh(request.layout, worlds, request.algorithms), worlds.memory(), clock);
          for (const auto& axis : training.mesh().axes()) axis->clear_account();
          training.step(read_nothing);
          const std::string trouble =
              difference(plan_rank(request, me.rank()), observed(training), request.layout.pipeline > 1);
          me.check(trouble.empty(), "{}", trouble);
        }) == "");
}

TEST_CASE("what is planned is what is measured", "[threads]") {
  for (const int world : {2, 4, 6, 8})
    for (const Layout& layout : all_layouts({request_for({}, "ring").options.shape, world, 12, 1}))
      for (const char* algorithm : {"ring", "auto"}) planned_is_measured(request_for(layout, algorithm));
}

TEST_CASE("model states have the published bytes a parameter") {
  for (const int ranks : {2, 4}) {
    for (int zero = 0; zero < 4; ++zero)
      for (const DType compute : {DType::f32, DType::bf16}) {
        PlanRequest request = request_for({.data = ranks, .zero = zero}, "ring", compute);
        request.options.shape.vocabulary = 64;  // every bucket then divides by the ranks: nothing is padded
        const RankPlan plan = plan_rank(request, 0);
        const std::int64_t psi = plan.parameters, n = ranks, wide = compute == DType::f32 ? 4 : 2;
        const std::int64_t state = compute == DType::f32 ? 8 : 12;
        const std::int64_t values = zero == 3 ? wide * psi / n : wide * psi;
        const std::int64_t gradients = zero >= 2 ? 4 * psi / n : 4 * psi,
                           optimizer = zero >= 1 ? state * psi / n : state * psi;
        INFO(ranks << " ranks, ZeRO-" << zero << ", " << name_of(compute));
        CHECK(plan.held[static_cast<std::size_t>(Category::params)] == values);
        CHECK(plan.held[static_cast<std::size_t>(Category::grads)] == gradients);
        CHECK(plan.held[static_cast<std::size_t>(Category::optimizer)] == optimizer);
      }
  }
}

std::int64_t sent_by(const RankPlan& plan, const char* axis) {
  std::int64_t bytes = 0;
  for (const Account::Entry& entry : plan.axes.at(axis).entries) bytes += entry.bytes;
  return bytes;
}

TEST_CASE("by ring, data parallelism sends what its closed forms say") {
  constexpr std::int64_t n = 4, micro_batches = 3;
  for (int zero = 0; zero < 4; ++zero) {
    PlanRequest request = request_for({.data = n, .zero = zero}, "ring");
    request.options.shape.vocabulary = 64;
    request.options.micro_batch = 1;
    const RankPlan plan = plan_rank(request, 0);
    const std::int64_t table = 64 * 48;  // tied: the head gathers it again, each way
    const std::int64_t elements[] = {2 * plan.parameters, 2 * plan.parameters, (micro_batches + 1) * plan.parameters,
                                     micro_batches * (3 * plan.parameters + 2 * table)};
    INFO("ZeRO-" << zero);
    CHECK(sent_by(plan, "dp") == 4 * elements[zero] * (n - 1) / n);
  }
}

}  // namespace
}  // namespace chorale
