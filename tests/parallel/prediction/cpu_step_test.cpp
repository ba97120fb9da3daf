// Tests the predicted time of a step. The prediction follows from the work that kernels report, the rates in the machine
// file, and the costs of the calls.
#include "parallel/prediction/cpu_step.hpp"

#include "tests/catch.hpp"
#include "tests/parallel/small_training.hpp"

namespace chorale::test {
namespace {

Machine machine() {
  Machine m{.signature = machine_signature(), .cores = 2};
  m.computes.push_back({.type = "f32", .ranks = 2, .product = 1e9, .attention = 5e8, .elements = 1e9, .update = 2e9});
  Level level{.backend = "ucx", .ranks = 2};
  level.prices = {{"latency", {1e-6}}, {"cross", {1e9, 1e9, 1e9, 1e9, 1e9}}, {"copy", {1e9}}};
  Level network = level;
  network.span = "network";
  network.hosts = 2;
  network.prices["link"] = {1e6};
  m.levels = {level, network};
  return m;
}

PlanRequest request(const char* layout, int ranks, std::vector<int> hosts = {}, const Machine& prices = machine()) {
  TrainingOptions options = small();
  options.batch.micro = 2;
  PlanRequest r{.options = options, .layout = parse_layout(layout, ranks)};
  r.backends = {{"", "ucx"}};
  r.selector = std::make_shared<const Selector>(TuningTable{}, prices);
  r.hosts = std::move(hosts);
  return r;
}

double amount(const Amounts& work, Work kind) { return work[static_cast<std::size_t>(kind)]; }

}  // namespace

TEST_CASE("the work of a step's products and of attention follows from the model's shape") {
  const PlanRequest one = request("dp1", 1);
  const ModelShape& shape = one.options.shape;
  const Amounts work = script_of(one, 0).total();
  const double tokens = static_cast<double>(one.options.batch.global * shape.sequence);
  const std::int64_t matrices = shape.layers * 12 * shape.width * shape.width + shape.vocabulary * shape.width;
  CHECK(amount(work, Work::product) == Approx(6.0 * static_cast<double>(matrices) * tokens));
  // There are seven products, because the backward pass computes the scores again. Causal attention needs half of each
  // product.
  const double one_product = static_cast<double>(shape.layers * shape.sequence * shape.width) * tokens;
  CHECK(amount(work, Work::attention) == Approx(7 * one_product));
  CHECK(amount(work, Work::elements) > 0);
  // AdamW reads and writes a weight and two moments, and reads the gradient. All of these values are f32. The norm reads the
  // gradient again.
  CHECK(amount(work, Work::update) == Approx(32.0 * static_cast<double>(shape.parameters())));
}

TEST_CASE("one rank takes the time of its work, and replicas the time of their calls as well") {
  const PlanRequest one = request("dp1", 1);
  const Amounts work = script_of(one, 0).total();
  const double alone = amount(work, Work::product) / 1e9 + amount(work, Work::attention) / 5e8 +
                       amount(work, Work::elements) / 1e9 + amount(work, Work::update) / 2e9;
  CHECK(predict_cpu_step(one).time.seconds == Approx(alone));
  const double here = predict_cpu_step(request("dp2", 2)).time.seconds;
  const double across = predict_cpu_step(request("dp2", 2, {0, 1})).time.seconds;
  const double bytes = 4.0 * static_cast<double>(one.options.shape.parameters());
  CHECK(here < across);
  CHECK(across > bytes / 1e6);  // an all_reduce on two ranks sends each gradient once
  CHECK(across < 1.1 * bytes / 1e6 + alone);
}

TEST_CASE("more replicas compute faster until they outnumber the cores") {
  const double one = predict_cpu_step(request("dp1", 1)).time.seconds,
               two = predict_cpu_step(request("dp2", 2)).time.seconds;
  const StepTime four = predict_cpu_step(request("dp4", 4)).time;
  CHECK(two < 0.7 * one);
  CHECK(four.seconds > 0.9 * two);
  CHECK(four.computes.size() == 4);
}

TEST_CASE("a pipeline overlaps its stages, and layouts of several axes are predicted") {
  for (const auto& [layout, ranks] : std::initializer_list<std::pair<const char*, int>>{
           {"pp2", 2}, {"pp2.gpipe", 2}, {"pp2.zb-h1", 2}, {"dp4.z3", 4}, {"dp2.tp2.pp2.z1.sp", 8}, {"dp2.z2.tp2", 4}}) {
    INFO(layout);
    const PredictedCpuStep predicted = predict_cpu_step(request(layout, ranks));
    CHECK(predicted.why_not == "");
    CHECK(predicted.time.seconds > 0);
  }
  CHECK(predict_cpu_step(request("pp2", 2)).time.seconds < 0.9 * predict_cpu_step(request("pp2.naive", 2)).time.seconds);
}

TEST_CASE("late context ranks compute longer if a sequence is cut into contiguous parts, and equally long if into zigzags") {
  PlanRequest divided = request("dp1.cp2", 2);
  divided.options.context.cut = &token_cut_named("contiguous");
  const PredictedCpuStep uneven = predict_cpu_step(divided);
  REQUIRE(uneven.why_not == "");
  const double one_product = static_cast<double>(divided.options.shape.layers * divided.options.shape.sequence *
                                                 divided.options.shape.width * divided.options.shape.sequence) *
                             static_cast<double>(divided.options.batch.global);
  // The first of two ranks has a quarter of all query-key pairs. The last rank has three quarters.
  CHECK(uneven.time.computes[1] - uneven.time.computes[0] == Approx(7 * one_product / 2 / 5e8));
  divided.options.context.cut = &token_cut_named("zigzag");
  const PredictedCpuStep even = predict_cpu_step(divided);
  CHECK(even.time.computes[1] == Approx(even.time.computes[0]));
  CHECK(even.time.seconds < uneven.time.seconds);
}

TEST_CASE("a step without all its prices is not predicted, and the reason is named") {
  CHECK_THAT(predict_cpu_step(request("dp1", 1, {}, {})).why_not, says("no compute rates of f32"));
  Machine no_network = machine();
  no_network.levels.pop_back();
  CHECK_THAT(predict_cpu_step(request("dp2", 2, {0, 1}, no_network)).why_not, says("no price of the calls of dp"));
  PlanRequest exact = request("dp1", 1);
  exact.options.numerics = NumericsKind::exact;
  CHECK_THAT(predict_cpu_step(exact).why_not, says("only fast numerics"));
  PlanRequest many = request("dp64", 64);
  many.options.batch.global = 128;
  CHECK_THAT(predict_cpu_step(many).why_not, says("at most 63 ranks, and the layout has 64"));
}

}  // namespace chorale::test
