#include "parallel/training.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "parallel/birth.hpp"
#include "src/base/error.hpp"

namespace chorale {
namespace {

std::unique_ptr<UpdateRule> rule_of(const TrainingOptions& o) {
  if (o.optimizer == "sgd") return sgd_rule(o.momentum, o.decay);
  return adamw_rule(o.beta1, o.beta2, o.epsilon, o.decay);
}

void check(const TrainingOptions& o) {
  if (o.global_batch % o.micro_batch != 0)
    usage_error("batch sizes do not divide",
                fmt::format("global-batch-size {} is no multiple of micro-batch-size {}", o.global_batch, o.micro_batch),
                fmt::format("try --global-batch-size {}", (o.global_batch / o.micro_batch + 1) * o.micro_batch));
  if (o.numerics == "exact" && o.compute != DType::f32)
    usage_error("exact numerics compute in f32", fmt::format("dtype is {}", name_of(o.compute)),
                "use --dtype f32, or --numerics fast");
}

void clear(const Tensor& tensor) {
  const Slice all = tensor.slice();
  if (all.data) std::memset(all.data, 0, static_cast<std::size_t>(all.bytes()));
}

}  // namespace

Training::Training(const TrainingOptions& options, Memory& memory, Clock& clock)
    : options_(options),
      clock_(clock),
      memory_(memory, ledger_),
      numerics_((check(options), numerics_named(options.numerics))),
      model_(build_gpt(options.shape, options.remake)),
      parameters_(model_.parameters()),
      tape_(options.remake == Remake::selective) {
  allocate(model_, memory_, *numerics_, options.compute, options.global_batch * options.shape.sequence);
  optimizer_ = std::make_unique<Optimizer>(rule_of(options), parameters_, memory_, options.seed);
  loss_ = Tensor(memory_, {1}, options.numerics == "exact" ? DType::i64 : DType::f64, Category::workspace);
}

Context Training::context(std::int64_t first_sample, std::int64_t samples) {
  const std::int64_t sequence = options_.shape.sequence;
  Context context{.queue = {options_.threads}, .memory = memory_, .numerics = *numerics_, .compute = options_.compute};
  context.tokens = {.first_sample = first_sample, .sequence = sequence, .first_token = 0, .tokens = sequence};
  context.targets = context.typed({samples * sequence}, DType::i32, Category::data);
  context.seed = options_.seed;
  context.step = static_cast<std::uint32_t>(steps_);
  context.loss = loss_;
  context.step_tokens = options_.global_batch * sequence;
  return context;
}

Training::MicroBatch Training::read_batch(const ReadSamples& read, std::int64_t cursor, std::int64_t place,
                                          std::int64_t samples) {
  MicroBatch batch{{}, context(place, samples)};
  batch.inputs = batch.context.typed(batch.context.targets.shape(), DType::i32, Category::data);
  if (!batch.inputs.phantom())
    read(cursor, samples, batch.inputs.values<std::int32_t>(), batch.context.targets.values<std::int32_t>());
  return batch;
}

void Training::run_batch(const ReadSamples& read, StepResult& result) {
  const std::int64_t micro = options_.micro_batch;
  for (std::int64_t first = 0; first < options_.global_batch; first += micro) {
    const double start = clock_.seconds();
    MicroBatch batch = read_batch(read, samples_ + first, first, micro);
    batch.context.tape = &tape_;
    batch.context.loss_scale = options_.scaler.scale;
    const double filled = clock_.seconds();
    const std::int64_t before = ledger_.current(Category::activations);
    model_.layers.forward(batch.inputs, batch.context);
    activation_bytes_ = ledger_.current(Category::activations) - before;
    const double turned = clock_.seconds();
    model_.layers.backward({}, batch.context);
    require(tape_.empty(), "the backward pass left something on the tape");
    const double done = clock_.seconds();
    result.data += filled - start;
    result.forward += turned - filled;
    result.backward += done - turned;
    if (!batch.inputs.phantom())
      for (const std::int32_t target : batch.context.targets.values<std::int32_t>()) result.tokens += target >= 0;
  }
}

StepResult Training::step(const ReadSamples& read) {
  StepResult result{.step = steps_ + 1, .rate = options_.rate.at(steps_), .loss_scale = options_.scaler.scale};
  clear_gradients();
  clear(loss_);
  run_batch(read, result);
  const double start = clock_.seconds();
  result.loss = mean_loss(result.tokens);
  try {
    check_sums();
  } catch (const Error&) {  // the first site in the model's order need not be the first that failed
    name_birth(read);
  }
  const double scale = 1 / (static_cast<double>(std::max<std::int64_t>(result.tokens, 1)) * options_.scaler.scale);
  result.gradient_norm = gradient_norm(scale);
  const bool finite = std::isfinite(result.gradient_norm);
  result.skipped = options_.scaler.overflowed(!finite);
  if (!std::isfinite(result.loss) || (!finite && !result.skipped)) name_birth(read);
  if (!result.skipped) {
    const double clip = options_.clip > 0 ? std::min(1.0, options_.clip / (result.gradient_norm + 1e-6)) : 1;
    optimizer_->step(result.rate, scale * clip, *numerics_, {options_.threads});
  }
  ++steps_;
  samples_ += options_.global_batch;
  result.optimizer = clock_.seconds() - start;
  return result;
}

double Training::mean_loss(std::int64_t tokens) const {
  if (loss_.phantom()) return NAN;
  double sum = 0;
  visit(loss_.dtype(), [&]<class T>(Type<T>) { sum = static_cast<double>(loss_.values<T>()[0]); });
  return sum * numerics_->unit(model_.head->loss_site()) / static_cast<double>(std::max<std::int64_t>(tokens, 1));
}

double Training::gradient_norm(double scale) const {
  SquareSum squares;
  for (const ParameterPointer& p : parameters_)
    numerics_->add_squares(p->gradient.slice(), scale * numerics_->unit(p->site), squares, {options_.threads});
  return numerics_->root(squares);
}

void Training::clear_gradients() {
  for (const ParameterPointer& p : parameters_) clear(p->gradient);
}

void Training::each_site(const std::function<void(Site&)>& visit) {
  model_.layers.each_site(visit);
  for (const ParameterPointer& p : parameters_) visit(p->site);
}

void Training::check_sums() {
  each_site([&](const Site& site) {
    try {
      numerics_->check(site);
    } catch (const Error& error) {
      throw_at_step(steps_ + 1, error);
    }
  });
  each_site([](Site& site) { site.highest = 0; });
}

double Training::evaluate(const ReadSamples& read, std::int64_t samples) {
  clear(loss_);
  std::int64_t tokens = 0;
  for (std::int64_t first = 0; first < samples; first += options_.micro_batch) {
    MicroBatch batch = read_batch(read, first, first, std::min(options_.micro_batch, samples - first));
    batch.context.training = false;
    batch.context.step_tokens = samples * options_.shape.sequence;
    model_.layers.forward(batch.inputs, batch.context);
    for (const std::int32_t target : batch.context.targets.values<std::int32_t>()) tokens += target >= 0;
  }
  check_sums();
  return mean_loss(tokens);
}

void Training::resume_at(std::int64_t steps, std::int64_t samples) {
  steps_ = steps;
  samples_ = samples;
  optimizer_->publish({options_.threads});
}

std::int64_t Training::declared_activation_bytes() {
  Context one{.memory = memory_, .numerics = *numerics_, .compute = options_.compute};
  Tape tape(options_.remake == Remake::selective);
  one.tape = &tape;
  const Keeps all = model_.layers.keeps(options_.micro_batch * options_.shape.sequence, one);
  return all.input + all.inside + all.output;
}

void Training::name_birth(const ReadSamples& read) {
  clear_gradients();
  each_site([](Site& site) { site.highest = 0; });
  for (std::int64_t first = 0; first < options_.global_batch; first += options_.micro_batch) {
    MicroBatch batch = read_batch(read, samples_ + first, first, options_.micro_batch);
    Tape tape(options_.remake == Remake::selective);
    batch.context.tape = &tape;
    batch.context.loss_scale = options_.scaler.scale;
    batch.context.inspect = [&](const char* what, const std::string& layer, const Tensor& tensor) {
      check_sums();  // exact sums of what is no number are numbers
      throw_if_not_finite(steps_ + 1, what, layer, tensor);
    };
    batch.context.on_gradient_ready = [&](Parameter& p) {
      check_sums();
      throw_if_not_finite(steps_ + 1, "gradient", p.name, p.gradient);
    };
    model_.layers.forward(batch.inputs, batch.context);
    model_.layers.backward({}, batch.context);
  }
  for (const ParameterPointer& p : parameters_) throw_if_not_finite(steps_ + 1, "value", p->name, p->value);
  throw Error(Exit::runtime, fmt::format("the loss or the gradients of step {} are no numbers", steps_ + 1),
              "every layer's output and gradient is finite when computed again", "this is memory that changes by itself");
}

}  // namespace chorale
