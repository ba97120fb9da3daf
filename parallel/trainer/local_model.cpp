#include <chorale/train.hpp>

#include "layers/gpt.hpp"
#include "layers/optimizer.hpp"
#include "src/base/error.hpp"

namespace chorale {

struct LocalModel::Parts {
  Parts(const TrainingOptions& o, Allocator& memory)
      : options(o),
        memory(memory),
        numerics(numerics_of(o.numerics)),
        model(build_gpt(o.shape, o.recompute)),
        loss(memory, {1}, o.numerics == NumericsKind::exact ? DType::i64 : DType::f64, Category::workspace) {
    allocate(model, memory, *numerics, o.compute, tokens());
    std::vector<Owned> owned;
    for (const ParameterPointer& p : model.parameters()) {
      owned.push_back({p, 0, p->value.count(), p->value, p->gradient});
      parameters.push_back({p->name, p->value.slice(), p->gradient.slice()});
    }
    optimizer = std::make_unique<Optimizer>(rule_of(o.optimizer), owned, memory, o.seed, Queue{.threads = o.kernels.threads},
                                            o.optimizer.masters);
  }
  std::int64_t tokens() const { return options.batch.global * options.shape.sequence; }

  TrainingOptions options;
  Allocator& memory;
  std::unique_ptr<Numerics> numerics;
  Model model;
  Tensor loss;
  std::vector<LocalParameter> parameters;
  std::unique_ptr<Optimizer> optimizer;
};

namespace {

const TrainingOptions& checked(const TrainingOptions& options) {
  options.shape.check();
  if (options.shape.experts.count > 0)
    usage_error("a local model has no experts", std::to_string(options.shape.experts.count) + " experts were asked for",
                "train with Trainer, or set shape.experts.count = 0");
  if (options.batch.global < 1)
    usage_error("the batch has no samples", "batch.global is " + std::to_string(options.batch.global),
                "set it to 1 or more");
  return options;
}

}  // namespace

LocalModel::LocalModel(const TrainingOptions& options, Allocator& memory)
    : parts_(std::make_unique<Parts>(checked(options), memory)) {}
LocalModel::~LocalModel() = default;

const std::vector<LocalParameter>& LocalModel::parameters() const { return parts_->parameters; }
Slice LocalModel::loss() const { return parts_->loss.slice(); }

void LocalModel::begin() {
  for (const ParameterPointer& p : parts_->model.parameters()) clear(p->gradient);
  clear(parts_->loss);
}

void LocalModel::pass(const ReadSamples& read, std::int64_t first, std::int64_t samples) {
  const TrainingOptions& o = parts_->options;
  require(first >= 0 && samples >= 1 && first + samples <= o.batch.global,
          "a batch of {} samples does not have the samples {} to {}", o.batch.global, first, first + samples - 1);
  const std::int64_t sequence = o.shape.sequence, step = parts_->optimizer->steps();
  Tape tape(o.recompute == Recompute::selective);
  Context context{{.queue = {.threads = o.kernels.threads},
                   .memory = parts_->memory,
                   .numerics = *parts_->numerics,
                   .compute = o.compute,
                   .seed = o.seed}};
  context.tokens = {.first_sample = first, .sequence = sequence, .tokens = sequence};
  context.stream = context.tokens;
  context.step = static_cast<std::uint32_t>(step);
  context.tape = &tape;
  context.loss = parts_->loss;
  context.step_tokens = parts_->tokens();
  const Tensor ids = context.typed({samples * sequence}, DType::i32, Category::data);
  context.targets = context.typed(ids.shape(), DType::i32, Category::data);
  read(step * o.batch.global + first, samples, {ids.values<std::int32_t>(), context.targets.values<std::int32_t>()});

  const std::vector<LayerPointer>& layers = parts_->model.layers.layers();
  Tensor x = ids, dx;
  for (const LayerPointer& layer : layers) x = layer->forward(x, context);
  for (auto layer = layers.rbegin(); layer != layers.rend(); ++layer) dx = (*layer)->backward(dx, context);
}

double LocalModel::update() {
  const TrainingOptions& o = parts_->options;
  const Numerics& numerics = *parts_->numerics;
  const auto tokens = static_cast<double>(parts_->tokens());
  const SumSite& of_loss = parts_->model.head->loss_site();
  const double sum = o.numerics == NumericsKind::exact
                         ? static_cast<double>(parts_->loss.values<std::int64_t>()[0]) * numerics.unit(of_loss)
                         : parts_->loss.values<double>()[0];
  parts_->model.layers.each_site([&](SumSite& site) { numerics.check(site); });
  std::vector<ScaledSlice> gradients;
  for (const ParameterPointer& p : parts_->model.parameters()) {
    numerics.check(p->site);
    gradients.push_back({p->gradient.slice(), numerics.unit(p->site) / tokens});
  }
  double clip = 1;
  if (o.optimizer.clip > 0) {
    SquareSum squares;
    numerics.add_squares(gradients, squares, {});
    clip = std::min(1.0, o.optimizer.clip / (numerics.root(squares) + 1e-6));
  }
  parts_->optimizer->step(o.optimizer.rate.at(parts_->optimizer->steps()), clip / tokens, numerics, {});
  return sum / tokens;
}

}  // namespace chorale
