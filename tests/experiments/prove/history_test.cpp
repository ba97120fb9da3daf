// Tests the code that finds and describes the first difference between two runs.
#include "experiments/prove/history.hpp"

#include <fmt/format.h>

#include "tests/catch.hpp"

namespace chorale::prove {
namespace {

ModelShape shape() { return {ModelFamily::gpt2, 2, 2, 2, 16, 32, 8, 32}; }

History history() {
  const std::map<std::string, std::uint64_t> prints{
      {"embedding.weight", 1}, {"block.0.mlp.up.weight", 2}, {"mean/block.1.mlp.norm.gain", 3}, {"norm.gain", ~0ull}};
  return {{{0.1, 0.3, prints}, {0.2, 0.4, prints}}, 1.5};
}

TEST_CASE("a history written as text keeps all bits") {
  const History there = History::read(history().text());
  CHECK(there.steps.size() == 2);
  CHECK(!first_difference(history(), there, shape()));
  CHECK(there.seconds == 1.5);
  CHECK(there.steps[1].prints == history().steps[1].prints);
}

TEST_CASE("an incomplete history keeps its failure, and is compared up to its last step") {
  History cut = history();
  cut.steps.pop_back();
  cut.failure = "step 2: something\n  of 3 lines\n  is wrong";
  cut.failed_at = 12.25;
  const History there = History::read(cut.text());
  CHECK(there.failure == "step 2: something;  of 3 lines;  is wrong");
  CHECK(there.failed_at == 12.25);
  CHECK(there.steps.size() == 1);
  CHECK(!first_difference(history(), there, shape()));
}

TEST_CASE("a difference is named by its first step and by its first tensor in the order of computation") {
  const auto named = [](auto change) {
    History other = history();
    change(other.steps[1]);
    const auto found = first_difference(history(), other, shape());
    return found ? fmt::format("{} {} {}", found->step, found->tensor, found->differing) : "equal";
  };
  CHECK(named([](StepState&) {}) == "equal");
  CHECK(named([](StepState& m) { m.loss += 1e-16; }) == "2 loss 0");
  CHECK(named([](StepState& m) { m.prints["choices"] = m.prints["gradient/norm.gain"] = 9; }) == "2 choices 0");
  CHECK(named([](StepState& m) { m.gradient_norm += 1e-15; }) == "2 gradient norm 0");
  CHECK(named([](StepState& m) { m.prints["block.0.mlp.up.weight"] = 9; }) == "2 block.0.mlp.up.weight 1");
  CHECK(named([](StepState& m) { m.prints["block.0.mlp.up.weight"] = m.prints["mean/block.1.mlp.norm.gain"] = 9; }) ==
        "2 mean/block.1.mlp.norm.gain 2");
  CHECK(named([](StepState& m) {
          m.prints["block.0.mlp.up.weight"] = 9;
          m.gradient_norm = 7;
        }) == "2 gradient norm 0");
  CHECK(named([](StepState& m) {
          m.prints["gradient/embedding.weight"] = m.prints["norm.gain"] = 9;
          m.gradient_norm = 7;
        }) == "2 gradient/embedding.weight 1");
  CHECK(named([](StepState& m) { m.prints.erase("norm.gain"); }) == "2 norm.gain 1");
  CHECK(named([](StepState& m) { m.prints["head.weight"] = 1; }) == "2 head.weight 1");
  CHECK(named([](StepState& m) { m.prints["norm.gain@dp1"] = m.prints["embedding.weight@dp1"] = 1; }) ==
        "2 norm.gain@dp1 2");
  History shorter = history();
  shorter.steps.pop_back();
  CHECK(first_difference(history(), shorter, shape())->step == 2);
}

TEST_CASE("the collectives behind a tensor follow from the layout") {
  const auto behind = [](const char* tensor, const char* word) {
    return collectives_behind(tensor, shape(), parse_layout(word, 0));
  };
  CHECK(behind("gradient/norm.gain", "dp1.tp2.sp") == "tp all_reduce; or before: tp reduce_scatter and all_gather");
  CHECK(behind("gradient/norm.gain", "dp2.tp2.sp.z1") ==
        "tp all_reduce, dp reduce_scatter; or before: tp reduce_scatter and all_gather");
  CHECK(behind("gradient/block.0.mlp.up.weight", "dp2") == "dp all_reduce");
  CHECK(behind("gradient/block.0.mlp.up.weight", "dp1.tp2") == "tp all_reduce");
  CHECK(behind("gradient/block.0.mlp.up.weight", "dp1") == "no collective: each rank computes it alone");
  CHECK(behind("gradient/embedding.weight", "dp1.pp2") == "ends all_reduce; or before: pp send");
  CHECK(behind("gradient/norm.gain", "dp2.z3") == "dp reduce_scatter; or before: dp all_gather of the weights");
  CHECK(behind("gradient norm", "dp1.tp2.pp2") == "world all_reduce");
  CHECK(behind("mean/norm.gain", "dp2.tp2") == "the optimizer, which sums nothing over ranks");
  CHECK(behind("norm.gain", "dp2.z1") ==
        "the optimizer, which sums nothing over ranks; or before: dp all_gather of the weights");
  ModelShape with_experts = shape();
  with_experts.experts = {.count = 4, .chosen = 2, .ffn = 8};
  CHECK(collectives_behind("gradient/block.0.mlp.expert.1.up.weight", with_experts, parse_layout("dp4.ep2.z1", 0)) ==
        "edp reduce_scatter; or before: ep all_to_all");
  CHECK(collectives_behind("gradient/block.0.mlp.router.weight", with_experts, parse_layout("dp4.ep2", 0)) ==
        "dp all_reduce; or before: ep all_to_all");
  AxisTable with_toy = all_axes();
  with_toy.add({.name = "toy", .noun = "toy", .divides = Divides::batch, .depth = 4, .grids = dense_grid});
  const auto on_toy = [&](const char* word) {
    return collectives_behind("gradient/norm.gain", shape(), parse_layout(word, 0, with_toy));
  };
  CHECK(on_toy("dp2.toy2") == "dp+toy all_reduce");
  CHECK(on_toy("dp1.toy2.z1") == "toy all_reduce");
  CHECK(on_toy("dp2.toy2.z1") == "dp reduce_scatter, toy all_reduce");
  CHECK(behind("loss", "dp2.z1") == "world all_reduce; or before: dp all_gather of the weights");
  CHECK(behind("loss", "dp1.tp2.pp2") == "world all_reduce; or before: tp all_reduce, pp send");
}

}  // namespace
}  // namespace chorale::prove
