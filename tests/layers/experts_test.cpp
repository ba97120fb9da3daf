// Tests the expert layer. Gradients of the whole layer in f64 are compared with central differences. Other test cases cover
// extreme routings, the bytes that the layer keeps, and refused shapes. tests/math/routing_test.cpp tests the arithmetic of
// the router.
#include "layers/layers.hpp"

#include <algorithm>

#include "src/math/reference/routing.hpp"
#include "tests/layers/slopes.hpp"
#include "tests/refused.hpp"

namespace chorale {
namespace {

double router_losses(const Tensor& logits, const RoutingRule& rule) {
  const auto values = logits.values<double>();
  reference::Choices all;
  for (std::int64_t t = 0; t < logits.dim(0); ++t) {
    const double* const row = values.data() + t * rule.experts;
    const reference::Choices chosen = reference::choose({row, row + rule.experts}, rule);
    all.insert(all.end(), chosen.begin(), chosen.end());
  }
  return reference::router_losses({values.begin(), values.end()}, all, rule);
}

// A model with one block of experts. The model is small, because matrix products in f64 run in plain loops.
ModelShape one_block(ModelFamily family) {
  ModelShape shape{family, 1, 2, 2, 12, 24, 6, 31};
  shape.experts = {.count = 6, .chosen = 2, .ffn = 8};
  return shape;
}

struct Variation {
  const char* about;
  void (*change)(Experts&);
};

const Variation variations[] = {
    {"softmax over the chosen", [](Experts&) {}},
    {"softmax over all", [](Experts& e) { e.before_choice = true; }},
    {"sigmoid, scaled",
     [](Experts& e) {
       e.score = ScoreFunction::sigmoid;
       e.scale = 2.5;
     }},
    {"two of three groups",
     [](Experts& e) {
       e.score = ScoreFunction::sigmoid;
       e.groups = 3;
       e.chosen_groups = 2;
     }},
    {"one expert per token",
     [](Experts& e) {
       e.chosen = 1;
       e.before_choice = true;
     }},
    {"all experts", [](Experts& e) { e.chosen = e.count; }},
    {"a shared expert", [](Experts& e) { e.shared_ffn = 10; }},
    {"drops", [](Experts& e) { e.capacity = 0.6; }},
    {"zipf", [](Experts& e) { e.routing = ForcedRouting::zipf; }},
    {"all to the first experts, drops",
     [](Experts& e) {
       e.routing = ForcedRouting::one;
       e.capacity = 0.6;
       e.score = ScoreFunction::sigmoid;
     }},
    {"drops, a shared expert",
     [](Experts& e) {
       e.capacity = 0.6;
       e.score = ScoreFunction::sigmoid;
       e.shared_ffn = 10;
     }},
};

TEST_CASE("the gradients of experts are slopes of the loss, with every score, with and without drops") {
  for (const ModelFamily family : {ModelFamily::llama, ModelFamily::gpt2})
    for (const Variation& variation : variations) {
      ModelShape shape = one_block(family);
      variation.change(shape.experts);
      INFO(name_of(family) << ", " << variation.about);
      check_gradients(shape, 3);
    }
}

TEST_CASE("the gradients of the balance loss and the z-loss are their slopes") {
  for (const ScoreFunction score : {ScoreFunction::softmax, ScoreFunction::sigmoid})
    for (const double capacity : {0.0, 0.6}) {
      ModelShape shape = one_block(ModelFamily::llama);
      shape.experts.score = score;
      shape.experts.capacity = capacity;
      shape.experts.balance = 0.7;
      shape.experts.z = 0.3;
      SmallModel m(shape, DType::f64, 3);
      m.more_loss = [&](const Tensor& logits) { return router_losses(logits, rule_of(shape)); };
      INFO(name_of(score) << ", capacity " << capacity);
      check_gradients(m);
    }
}

TEST_CASE("with groups, drops, a shared expert and both losses at once, the gradients of experts are slopes too") {
  ModelShape shape = one_block(ModelFamily::llama);
  shape.head = 8;
  shape.qk_norm = true;
  shape.experts = {.count = 6, .chosen = 2, .ffn = 8, .shared_ffn = 10, .score = ScoreFunction::sigmoid, .scale = 2.5};
  shape.experts.groups = 3;
  shape.experts.chosen_groups = 2;
  shape.experts.capacity = 0.6;
  shape.experts.balance = 0.7;
  shape.experts.z = 0.3;
  SmallModel m(shape, DType::f64, 3);
  m.more_loss = [&](const Tensor& logits) { return router_losses(logits, rule_of(shape)); };
  check_gradients(m);
}

// If all logits are equal, every token chooses the first expert, and the other experts get no rows.
TEST_CASE("all tokens may choose the same expert") {
  for (const double capacity : {0.0, 1.0}) {
    ModelShape shape = one_block(ModelFamily::llama);
    shape.experts.chosen = 1;
    shape.experts.before_choice = true;
    shape.experts.capacity = capacity;
    SmallModel m(shape, DType::f64, 3);
    for (const ParameterPointer& p : m.model.parameters())
      if (p->name.ends_with("router.weight")) std::ranges::fill(p->value.values<double>(), 0.0);
    check_gradients(m, "router.weight");  // router weights are excluded: a small change of them changes the chosen experts
    m.forward_backward();
    for (const ParameterPointer& p : m.model.parameters())
      if (p->name.find(".expert.") != std::string::npos) {
        INFO(p->name << ", capacity " << capacity);
        CHECK((norm(m.gradient(p)) > 0) == (p->name.find(".expert.0.") != std::string::npos));
      }
    CHECK(m.desk.ledger.current(Category::activations) == 0);
  }
}

TEST_CASE("f32 computes the same experts as f64, in fast and in exact numerics") {
  for (const Variation& variation : variations) {
    ModelShape shape = one_block(ModelFamily::llama);
    variation.change(shape.experts);
    shape.experts.balance = 0.1;
    shape.experts.z = 0.01;
    SmallModel reference(shape, DType::f64, 3);
    const double loss = reference.forward_backward();
    double whole = 0;
    for (const ParameterPointer& p : reference.model.parameters()) whole = std::hypot(whole, norm(reference.gradient(p)));
    for (const bool exact : {false, true}) {
      SmallModel m(shape, DType::f32, 3, Recompute::none, exact);
      CHECK(m.forward_backward() == Approx(loss).epsilon(2e-6));
      const auto ours = m.model.parameters(), theirs = reference.model.parameters();
      for (std::size_t p = 0; p < ours.size(); ++p) {
        const std::vector<double> expected = reference.gradient(theirs[p]);
        std::vector<double> off = m.gradient(ours[p]);
        for (std::size_t i = 0; i < off.size(); ++i) off[i] -= expected[i];
        INFO(variation.about << ", " << ours[p]->name << (exact ? ", exact" : ", fast"));
        CHECK(norm(off) <= 2e-5 * std::max(norm(expected), 1e-2 * whole));
      }
    }
  }
}

TEST_CASE("with a capacity, experts keep at most the declared bytes; without one, exactly these") {
  for (const double capacity : {0.0, 0.6, 1.0, 4.0})
    for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
      ModelShape shape = one_block(ModelFamily::llama);
      shape.experts.capacity = capacity;
      shape.experts.shared_ffn = 10;
      SmallModel m(shape, DType::f32, 3, recompute);
      m.forward_backward();
      INFO("capacity " << capacity << ", kept " << m.kept_bytes << " of " << m.declared_bytes());
      CHECK((capacity > 0 ? m.kept_bytes <= m.declared_bytes() : m.kept_bytes == m.declared_bytes()));
    }
}

TEST_CASE("the error for an invalid shape of experts names the options and their numbers") {
  const auto refused = [](auto change) -> std::string {
    ModelShape shape = one_block(ModelFamily::llama);
    change(shape.experts);
    try {
      shape.check();
    } catch (const Error& error) {
      return error.exit() == Exit::usage ? error.what() : "";
    }
    return "";
  };
  const auto says = [](const std::string& text, const char* words) { return text.find(words) != std::string::npos; };
  CHECK(refused([](Experts&) {}).empty());
  CHECK(says(refused([](Experts& e) { e.chosen = 7; }), "it chooses 7 of 6 experts"));
  CHECK(says(refused([](Experts& e) { e.chosen = 0; }), "it chooses 0 of 6 experts"));
  CHECK(says(refused([](Experts& e) { e.ffn = 0; }), "moe-ffn-hidden-size is 0"));
  CHECK(says(refused([](Experts& e) { e.capacity = -1; }), "the factor is -1"));
  CHECK(says(refused([](Experts& e) { e.every = 2; }), "expert-interval 2 is more than num-layers 1"));
  CHECK(says(refused([](Experts& e) { e.groups = 4; }), "6 experts, 4 groups"));
  CHECK(says(refused([](Experts& e) {
               e.groups = 3;
               e.chosen_groups = 4;
             }),
             "from 4 of 3 groups"));
  CHECK(says(refused([](Experts& e) {
               e.groups = 6;
               e.chosen_groups = 1;
             }),
             "from 1 of 6 groups with 1 experts each"));
  CHECK(says(refused([](Experts& e) { e.z = -0.1; }), "z -0.1"));
  CHECK(says(test::refused([] { named<ForcedRouting>("Zipf"); }), "balanced, uniform, zipf, one"));
  CHECK(says(refused([](Experts& e) {
               e.score = ScoreFunction::sigmoid;
               e.before_choice = true;
             }),
             "moe-router-score-function is sigmoid"));
}

}  // namespace
}  // namespace chorale
