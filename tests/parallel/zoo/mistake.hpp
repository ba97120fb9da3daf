// The bug zoo: mistakes that training frameworks have shipped. Each mistake is made in the component in which it would
// really occur, through the interfaces that strategies use. The components are gradient reducers, shard boundaries,
// attention schemes, samples, optimizer states and resumed runs. A mistake is one row of a table, and each table is one
// file:
//
//   gradients.cpp   sums of gradients                             samples.cpp   the order of samples, dropout masks
//   norms.cpp       the norm of gradients, and clipping           tokens.cpp    ranks that divide sequences
//   weights.cpp     shards, optimizer states, resumed runs        experts.cpp   ranks that divide experts
//   layers.cpp      ranks that divide layers
//
// zoo_test.cpp applies every detector (detectors.hpp) to every mistake.
#pragma once
#include <span>

#include "layers/wrapping.hpp"
#include "tests/parallel/layouts.hpp"

namespace chorale::zoo {

using test::Run;

struct Mistake {
  const char* about;
  std::vector<const char*> layouts;  // docs/bug_zoo.md shows the first layout
  const char* proof;                 // on every layout, the proof's message must contain this text
  // Sets options of both the correct run and the run with the mistake.
  void (*setting)(TrainingOptions&) = [](TrainingOptions&) {};
  // Makes the mistake on one rank, either in the options or in the run before the first step.
  void (*change)(TrainingOptions&, const Mesh&) = [](TrainingOptions&, const Mesh&) {};
  void (*make)(Run&) = [](Run&) {};
};

// The smallest model that the layouts of the zoo can divide.
inline ModelShape tiny_shape() {
  ModelShape shape = test::small_shape();
  shape.layers = 3;
  shape.width = 24;
  shape.ffn = 48;
  return shape;
}

std::vector<Mistake> mistakes_in_gradients(), mistakes_in_norms(), mistakes_in_weights(), mistakes_in_layers(),
    mistakes_in_samples(), mistakes_in_tokens(), mistakes_in_experts();

// Wraps the gradient reducer of a run. A mistake overrides one or more of the reducer's functions.
struct Before : Reducer {
  Before(Run& to, std::unique_ptr<Reducer> before) : run(to), inner(std::move(before)) {}
  void begin(std::int64_t micro_batches) override { inner->begin(micro_batches); }
  void ready(const Parameter& p) override { inner->ready(p); }
  void finish() override { inner->finish(); }
  void publish() override { inner->publish(); }

  Run& run;
  std::unique_ptr<Reducer> inner;
};

template <class Mistaken>
void reduce_by(Run& run) {
  run.training.replace_reducer([&](auto inner) { return std::make_unique<Mistaken>(run, std::move(inner)); });
}

// Builds the model and wraps each of its blocks.
template <class Wrapped>
Model with_blocks_in(const ModelShape& shape, Recompute recompute, const Mesh& mesh) {
  Model model = build_gpt(shape, recompute, width_sharding(mesh), expert_sharding(mesh));
  auto& layers = model.layers.layers();
  for (std::size_t i = 1; i + 2 < layers.size(); ++i) layers[i] = std::make_unique<Wrapped>(std::move(layers[i]));
  return model;
}

template <class Wrapped>
void wrap_blocks(TrainingOptions& options, const Mesh&) {
  options.build = with_blocks_in<Wrapped>;
}

// Full recomputation with a mistake: the repeated forward pass also counts expert choices. Derived mistakes change the
// context of the repeated pass.
struct Recomputation : WrappingLayer {
  using WrappingLayer::WrappingLayer;
  virtual void again(Context&) const {}
  Tensor forward(const Tensor& x, Context& context) override {
    if (context.tape) context.tape->keep(x);
    Tape* const tape = std::exchange(context.tape, nullptr);
    const Tensor y = inner_->forward(x, context);
    context.tape = tape;
    return y;
  }
  Tensor backward(const Tensor& dy, Context& context) override {
    const Tensor x = context.tape->take();
    Tape kept;
    Context changed = context;
    changed.tape = &kept;
    again(changed);
    inner_->forward(x, changed);
    return inner_->backward(dy, changed);
  }
  Keeps keeps(std::int64_t rows, const Context& context) const override {
    return {.input = inner_->keeps(rows, context).input};
  }
};

}  // namespace chorale::zoo
