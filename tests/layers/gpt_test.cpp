// Tests the whole model. Covers gradients, the activations that the model keeps, and options that must not change results.
#include "layers/gpt.hpp"

#include "tests/catch.hpp"
#include "tests/layers/slopes.hpp"

namespace chorale {
namespace {

void same_gradients(SmallModel& a, SmallModel& b) {
  const auto ours = a.model.parameters(), theirs = b.model.parameters();
  REQUIRE(ours.size() == theirs.size());
  for (std::size_t p = 0; p < ours.size(); ++p) {
    INFO(ours[p]->name);
    CHECK(doubles(ours[p]->gradient) == doubles(theirs[p]->gradient));
  }
}

ModelShape with_dropout(ModelShape shape) {
  shape.dropout = 0.2;
  return shape;
}

TEST_CASE("the gradient of every parameter is the slope of the loss") {
  check_gradients(small_gpt(), 2);
  check_gradients(with_dropout(small_gpt()), 1);
  check_gradients(small_llama(), 2);
  check_gradients(with_dropout(small_llama()), 1);
  check_gradients(small_qwen(), 2);
}

TEST_CASE("the gradients of the presets whose names begin with tiny are slopes of the loss") {
  for (const ModelPreset& preset : model_presets()) {
    ModelShape shape = preset.shape;
    shape.experts.balance = shape.experts.z = 0;  // the model's loss does not include these losses (experts_test.cpp)
    if (std::string(preset.name).starts_with("tiny")) check_gradients(shape, 1);
  }
}

TEST_CASE("f32 and 16-bit types compute the same model as f64") {
  for (const ModelShape& shape : {small_gpt(), with_dropout(small_llama()), small_qwen()}) {
    SmallModel reference(shape, DType::f64, 3);
    const double loss = reference.forward_backward();
    double whole = 0;
    for (const ParameterPointer& p : reference.model.parameters()) whole = std::hypot(whole, norm(reference.gradient(p)));
    for (const auto& [type, exact, tolerance] : {std::tuple{DType::f32, false, 1e-5},
                                                 {DType::f32, true, 1e-5},
                                                 {DType::bf16, false, 0.1},
                                                 {DType::f16, false, 0.02}}) {
      SmallModel m(shape, type, 3, Recompute::none, exact);
      CHECK(m.forward_backward() == Approx(loss).epsilon(tolerance / 5));
      const auto ours = m.model.parameters(), theirs = reference.model.parameters();
      for (std::size_t p = 0; p < ours.size(); ++p) {
        const ParameterPointer& parameter = ours[p];
        const std::vector<double> expected = reference.gradient(theirs[p]);
        std::vector<double> off = m.gradient(parameter);
        for (std::size_t i = 0; i < off.size(); ++i) off[i] -= expected[i];
        INFO(parameter->name << " in " << name_of(type) << (exact ? ", exact" : ""));
        CHECK(norm(off) <= tolerance * std::max(norm(expected), 1e-2 * whole));
      }
    }
  }
}

TEST_CASE("the published activation bytes are those of one rank") {
  ModelShape shape;
  shape.sequence = 2048;
  shape.width = 4096;
  shape.heads = 32;  // 5·a·s/h = 80
  const double sbh = 2048.0 * 4 * 4096;
  CHECK(published_activation_bytes(shape, 4) == Approx(sbh * 114));
  CHECK(published_activation_bytes(shape, 4, 8) == Approx(sbh * (10 + 3 + 10)));
  CHECK(published_activation_bytes(shape, 4, 8, true) == Approx(sbh * 114 / 8));
}

TEST_CASE("recomputing activations changes no bit of the loss and the gradients, and keeps fewer bytes") {
  for (const ModelShape& shape :
       {with_dropout(small_gpt()), with_dropout(small_llama()), small_qwen(), small_moe(), with_drops(small_moe())}) {
    SmallModel kept(shape, DType::f32, 3);
    const double loss = kept.forward_backward();
    for (const Recompute recompute : {Recompute::selective, Recompute::full}) {
      SmallModel again(shape, DType::f32, 3, recompute);
      CHECK(again.forward_backward() == loss);
      same_gradients(again, kept);
      CHECK(again.kept_bytes < kept.kept_bytes);
    }
  }
}

TEST_CASE("activations take the bytes that the layers declare") {
  for (const ModelShape& shape : {small_gpt(), small_llama(), small_qwen(), with_dropout(small_gpt()), small_moe()})
    for (const DType type : {DType::f32, DType::bf16, DType::f64})
      for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
        SmallModel m(shape, type, 3, recompute);
        m.forward_backward();
        INFO(name_of(shape.family) << " " << name_of(type) << " " << static_cast<int>(recompute));
        CHECK(m.kept_bytes == m.declared_bytes());
        CHECK(m.desk.ledger.current(Category::activations) == 0);  // the backward pass has freed all activations
      }
}

TEST_CASE("two threads change no bit in exact numerics, and nearly nothing in fast numerics") {
  for (const bool exact : {false, true}) {
    SmallModel one(small_gpt(), DType::f32, 4, Recompute::none, exact),
        two(small_gpt(), DType::f32, 4, Recompute::none, exact);
    two.threads = 2;
    if (exact) {
      CHECK(one.forward_backward() == two.forward_backward());
      same_gradients(one, two);
    } else {
      CHECK(one.forward_backward() == Approx(two.forward_backward()).epsilon(1e-6));  // oneDNN may split sums among threads
    }
  }
}

TEST_CASE("deferred weight gradients have the same bits as those computed at once") {
  for (const ModelShape& shape : {small_gpt(), small_moe()}) {
    SmallModel at_once(shape, DType::f32, 2), later(shape, DType::f32, 2);
    at_once.forward_backward();
    later.clear();
    Context c = later.context();
    std::vector<std::function<void()>> work;
    c.tape = &later.tape;
    c.deferred_weight_gradients = &work;
    later.model.layers.forward(later.ids, c);
    later.model.layers.backward({}, c);
    CHECK(norm(later.gradient(later.model.parameters()[0])) == 0);
    std::vector<std::string> ready;
    c.on_gradient_ready = [&](Parameter& p) { ready.push_back(p.name); };
    for (const auto& piece : work) piece();
    same_gradients(later, at_once);
    CHECK(ready.size() == later.model.parameters().size());  // the callback is called once per parameter
  }
}

TEST_CASE("a built model has as many parameters as its shape declares") {
  for (const ModelPreset& preset : model_presets()) {
    const Model model = build_gpt(preset.shape, Recompute::none);
    std::int64_t count = 0;
    for (const ParameterPointer& p : model.parameters()) count += elements_of(p->shape);
    INFO(preset.name);
    CHECK(count == preset.shape.parameters());
  }
  CHECK(model_presets()[2].shape.parameters() == 124439808);  // as published for GPT-2
}

TEST_CASE("in phantom memory, a model accounts for the activation bytes of a real model") {
  for (const ModelShape& shape : {small_gpt(), small_qwen(), small_moe()}) {
    PhantomMemory nowhere;
    Ledger ledger;
    Allocator allocator(nowhere, ledger);
    const auto numerics = fast_numerics();
    Model model = build_gpt(shape, Recompute::none);
    allocate(model, allocator, *numerics, DType::f32, 24);
    Tape tape;
    Context c{{.memory = allocator, .numerics = *numerics}};
    c.tokens = {.sequence = 12, .tokens = 12};
    c.targets = c.typed({24}, DType::i32, Category::data);
    c.loss = c.typed({1}, DType::f64, Category::workspace);
    c.tape = &tape;
    model.layers.forward(c.typed({24}, DType::i32, Category::data), c);
    SmallModel real(shape, DType::f32, 2);
    real.forward_backward();
    CHECK(ledger.current(Category::activations) == real.kept_bytes);
    model.layers.backward({}, c);
    CHECK(ledger.current(Category::activations) == 0);
  }
}

TEST_CASE("the error for an invalid shape names the options and their numbers") {
  const auto refused = [](ModelShape shape) -> std::string {
    try {
      shape.check();
    } catch (const Error& error) {
      return error.exit() == Exit::usage ? error.what() : "";
    }
    return "";
  };
  ModelShape s = small_gpt();
  s.width = 33;
  CHECK(refused(s).find("hidden-size 33 is not a multiple of num-attention-heads 4") != std::string::npos);
  s = small_llama();
  s.groups = 3;
  CHECK(refused(s).find("num-attention-heads 4 is not a multiple of num-query-groups 3") != std::string::npos);
  s = small_gpt();
  s.layers = 0;
  CHECK(refused(s).find("num-layers is 0") != std::string::npos);
}

}  // namespace
}  // namespace chorale
