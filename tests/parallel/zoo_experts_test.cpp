// The bug zoo (zoo_test.cpp): mistakes in the training of experts.
#include "layers/wrapping.hpp"
#include "tests/catch.hpp"
#include "tests/parallel/mistakes.hpp"

namespace chorale {
namespace {

using namespace zoo;
using test::Run;

// Gradients of divided experts are multiplied by the number of ranks that divide them, as if a rank's share of the tokens
// were that of a replica.
struct ExpertsTooLarge : Before {
  using Before::Before;
  void finish() override {
    inner->finish();
    const std::int64_t ranks = run.training.mesh().layout().expert_ranks();
    for (const Owned& owned : run.training.buckets().owned())
      if (std::ranges::count(owned.parameter->cut_by, "ep") > 0)
        for (std::int64_t& g : owned.gradient.values<std::int64_t>()) g *= ranks;
  }
};

// Full recomputation that counts the choices of experts again.
struct CountsAgain final : WrappingLayer {
  using WrappingLayer::WrappingLayer;
  Tensor forward(const Tensor& x, Context& context) override {
    if (context.tape) context.tape->keep(x);
    Tape* const tape = std::exchange(context.tape, nullptr);
    const Tensor y = inner_->forward(x, context);
    context.tape = tape;
    return y;
  }
  Tensor backward(const Tensor& dy, Context& context) override {
    const Tensor x = context.tape->take();
    Tape again;
    Tape* const tape = std::exchange(context.tape, &again);
    inner_->forward(x, context);
    const Tensor dx = inner_->backward(dy, context);
    context.tape = tape;
    return dx;
  }
  Keeps keeps(std::int64_t rows, const Context& context) const override {
    return {.input = inner_->keeps(rows, context).input};
  }
};

// Every forward pass moves the biases of experts, even that of an evaluation.
struct MovesAlways final : WrappingLayer {
  using WrappingLayer::WrappingLayer;
  Tensor forward(const Tensor& x, Context& context) override {
    if (!context.training) context.balance->bias()->value.values<float>()[0] += 1e-6f;
    return inner_->forward(x, context);
  }
  Tensor backward(const Tensor& dy, Context& context) override { return inner_->backward(dy, context); }
};

template <class Wrapped>
Model with_blocks_in(const ModelShape& shape, Remake remake, const Mesh& mesh) {
  Model model = build_gpt(shape, remake, share_of_width(mesh), share_of_experts(mesh));
  auto& layers = model.layers.layers();
  for (std::size_t i = 1; i + 2 < layers.size(); ++i) layers[i] = std::make_unique<Wrapped>(std::move(layers[i]));
  return model;
}

// Some mistakes change the options of the mistaken run: `change` gets the layout.
struct MistakeOfExperts {
  const char* about;
  std::vector<const char*> layouts;
  const char* caught;
  void (*change)(TrainingOptions&, const Layout&) = [](TrainingOptions&, const Layout&) {};
  void (*make)(Run&) = [](Run&) {};
};

const MistakeOfExperts mistakes_of_experts[] = {
    {.about = "gradients of experts are multiplied by ep",
     .layouts = {"dp2.ep2", "dp4.ep2.z1", "dp2.pp2.ep2", "dp4.ep2.z3"},
     .caught = "step 1: norm",
     .make = reduce_by<ExpertsTooLarge>},
    {.about = "each tensor rank adds the whole balance loss",
     .layouts = {"dp1.tp2", "dp2.tp2.ep2.sp"},
     .caught = "step 1: norm",
     .change = [](TrainingOptions& o,
                  const Layout& layout) { o.shape.experts.balance *= static_cast<double>(layout.shards()); }},
    {.about = "the balance loss is not divided by the number of micro-batches",
     .layouts = {"dp1", "dp2.pp2", "dp2.ep2"},
     .caught = "step 1: norm",
     .change =
         [](TrainingOptions& o, const Layout& layout) {
           o.shape.experts.balance *= 12.0 / static_cast<double>(layout.replicas() * o.micro_batch);
         }},
    {.about = "recomputation counts the choices of experts again",
     .layouts = {"dp1", "dp1.tp2", "dp2.ep2.z2"},
     .caught = "step 1: experts were chosen differently",
     .change = [](TrainingOptions& o, const Layout&) { o.build = with_blocks_in<CountsAgain>; }},
    {.about = "evaluations move the biases of experts",
     .layouts = {"dp1", "dp2.tp2", "dp2.ep2"},
     .caught = "step 2: expert_bias differs",
     .change = [](TrainingOptions& o, const Layout&) { o.build = with_blocks_in<MovesAlways>; }},
};

TEST_CASE("comparing a run with a one-rank run catches mistakes in the training of experts", "[threads]") {
  const auto options_of = [](const Layout& layout) {
    TrainingOptions options = test::options_for("exact", layout);
    options.shape = test::small_moe();
    options.shape.experts.score = "sigmoid", options.shape.experts.bias = true;
    return options;
  };
  const auto trained = [](Run& run) {
    run.steps(1).training.evaluate(run.read, 7);
    return run.steps(2).seen;
  };
  HostMemory host;
  Run right(options_of({}), Mesh(), host);
  const test::Seen expected = trained(right);
  for (const MistakeOfExperts& mistake : mistakes_of_experts)
    for (const char* word : mistake.layouts)
      for (const bool mistaken : {false, true}) {
        INFO(mistake.about << " in " << word);
        const Layout layout = parse_layout(word, 0);
        TrainingOptions options = options_of(layout);
        options.micro_batch = 1;
        if (mistaken) mistake.change(options, layout);
        const std::string trouble = test::on_thread_mesh(layout, [&](Mesh mesh, Memory& memory) {
          Run run(options, std::move(mesh), memory);
          if (mistaken) mistake.make(run);
          return difference(expected, trained(run));
        });
        if (mistaken)
          CHECK_THAT(trouble, Catch::Contains(mistake.caught));
        else
          CHECK(trouble == "");
      }
}

}  // namespace
}  // namespace chorale
