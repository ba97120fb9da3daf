// A small model for tests of layers, with weights and one batch. The model runs one forward and backward pass.
#pragma once
#include <memory>

#include "layers/gpt.hpp"
#include "tests/math/checks.hpp"

namespace chorale {

struct SmallModel {
  Desk desk;
  std::unique_ptr<Numerics> numerics;
  Model model;
  Tape tape;
  Tensor ids, targets, loss;
  DType compute;
  std::int64_t samples, kept_bytes = 0;
  int threads = 1;
  // Computes additional losses from the router's logits. The model adds the gradients of these losses to its gradients, but
  // does not add the losses to its loss.
  std::function<double(const Tensor& logits)> more_loss;
  double more = 0;

  SmallModel(const ModelShape& shape, DType type, std::int64_t batch, Recompute recompute = Recompute::none,
             bool exact = false)
      : numerics(exact ? exact_numerics() : fast_numerics()),
        model(build_gpt(shape, recompute)),
        tape(recompute == Recompute::selective),
        compute(type),
        samples(batch) {
    allocate(model, desk.allocator, *numerics, type, batch * shape.sequence);
    for (const ParameterPointer& p : model.parameters()) {
      initialize(*p, 0, p->value.slice(), 1, 1);
      // Changes all parameters slightly, so that gains differ from 1 and biases differ from 0. The tests then detect a
      // gradient that ignores gains or biases.
      visit_floating(type, [&]<class T>(Type<T>) {
        for (std::size_t i = 0; auto& v : p->value.values<T>())
          v = static_cast<T>(static_cast<float>(v) + 0.1f * Random{.seed = 3, .site = 9}.uniform(i++));
      });
    }
    const Shape rows{batch * shape.sequence};
    ids = desk.empty(rows, DType::i32);
    targets = desk.empty(rows, DType::i32);
    loss = desk.empty({1}, exact ? DType::i64 : DType::f64);
    const Random random{.seed = 5};
    for (std::size_t i = 0; i < ids.values<std::int32_t>().size(); ++i) {
      const auto draw = [&](std::uint64_t n) {
        return static_cast<std::int32_t>(random.bits(n) % static_cast<std::uint32_t>(shape.vocabulary));
      };
      ids.values<std::int32_t>()[i] = draw(2 * i);
      targets.values<std::int32_t>()[i] = i % 7 == 3 ? -1 : draw(2 * i + 1);
    }
  }

  Context context() {
    Context c{{.queue = {threads}, .memory = desk.allocator, .numerics = *numerics, .compute = compute}};
    c.tokens = {.first_sample = 0, .sequence = model.shape.sequence, .first_token = 0, .tokens = model.shape.sequence};
    c.stream = c.tokens;
    c.targets = targets;
    c.seed = 11;
    c.step = 2;
    c.loss = loss;
    c.step_tokens = samples * model.shape.sequence;
    if (more_loss)
      c.inspect = [this](const char* what, const std::string&, const Tensor& tensor) {
        if (std::string(what) == "router logits") more += more_loss(tensor);
      };
    return c;
  }

  double total() const {
    double sum = 0;
    visit(loss.dtype(), [&]<class T>(Type<T>) { sum = static_cast<double>(loss.values<T>()[0]); });
    return sum * numerics->unit(model.head->loss_site());
  }
  void clear() {
    const auto zero = [](const Tensor& t) {
      visit(t.dtype(), [&]<class T>(Type<T>) {
        for (T& v : t.values<T>()) v = T{};
      });
    };
    zero(loss);
    for (const ParameterPointer& p : model.parameters()) zero(p->gradient);
  }
  double forward() {
    clear();
    more = 0;
    Context c = context();
    model.layers.forward(ids, c);
    return total() + more;
  }
  double forward_backward() {
    clear();
    Context c = context();
    c.tape = &tape;
    const std::int64_t before = desk.ledger.current(Category::activations);
    model.layers.forward(ids, c);
    kept_bytes = desk.ledger.current(Category::activations) - before;
    model.layers.backward({}, c);
    return total();
  }
  std::int64_t declared_bytes() {
    Context c = context();
    c.tape = &tape;
    const Keeps all = model.layers.keeps(ids.count(), c);
    return all.input + all.inside + all.output;
  }
  std::vector<double> gradient(const ParameterPointer& p) const {
    std::vector<double> all = doubles(p->gradient);
    for (double& g : all) g *= numerics->unit(p->site);
    return all;
  }
};

// The shapes are small, because matrix products in f64 run in plain loops (src/math/reference).
inline ModelShape small_gpt() { return {ModelFamily::gpt2, 2, 4, 4, 32, 128, 12, 61}; }
inline ModelShape small_llama() {
  ModelShape s{ModelFamily::llama, 2, 4, 2, 32, 96, 12, 61};
  s.tied = false;
  return s;
}
// A model with normalized queries and keys. All heads together are wider than the residual stream.
inline ModelShape small_qwen() {
  ModelShape s = small_llama();
  s.head = 12;
  s.qk_norm = true;
  return s;
}
// A model with experts in every second block: a shared expert, and 6 routed experts, of which each token chooses 2.
inline ModelShape small_moe() {
  ModelShape s = small_llama();
  s.experts = {.count = 6, .chosen = 2, .ffn = 24, .shared_ffn = 16, .every = 2};
  return s;
}
inline ModelShape with_drops(ModelShape shape) {
  shape.experts.capacity = 0.75;
  return shape;
}

}  // namespace chorale
