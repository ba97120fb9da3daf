#include "parallel/step/training.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "parallel/experts/experts.hpp"
#include "parallel/pipeline/check.hpp"
#include "parallel/step/assemble.hpp"
#include "src/memory/on_host.hpp"

namespace chorale {
namespace {

const TrainingOptions& checked(const TrainingOptions& options, const Layout& layout) {
  check(options, layout);
  return options;
}

}  // namespace

Training::Training(const TrainingOptions& options, Memory& memory, Clock& clock)
    : Training(options, Mesh(), memory, clock) {}

Training::Training(const TrainingOptions& options, Mesh mesh, Memory& memory, Clock& clock)
    : options_(checked(options, mesh.layout())),
      mesh_(std::move(mesh)),
      clock_(clock),
      account_(mesh_, options.kernels.queue(), clock),
      memory_(memory, options.memory.limit, options.memory.contiguous, options.offload, options.kernels.device,
              options.kernels.meter),
      numerics_(numerics_on(options.kernels.device, options.numerics)),
      connections_(options, mesh_),
      stage_(options.shape, options.recompute, mesh_, options.build),
      parameters_(stage_.parameters()),
      schedule_(schedule_of(options, mesh_.layout())),
      read_by_(read_at_latest(schedule_, mesh_.pipeline().rank())),
      choices_(options.shape),
      balance_(options.shape, memory_.allocator()),
      batch_totals_(memory_.allocator(), options.numerics == NumericsKind::exact, choices_.words()) {
  if (!options_.kernels.timer && memory.stores()) options_.kernels.timer = &account_.work();
  memory_.ledger().add(Category::workspace, options.kernels.workspace_bytes);
  const std::int64_t tokens = options.batch.global * options.shape.sequence;
  for (const ParameterPointer& p : parameters_) p->site = site_of(*p, options.shape, tokens);
  if (FileTier* const file = memory_.file())
    file->measure(clock_, [this](double begins, double ends) {
      account_.trace().add({.kind = Trace::Kind::file, .begins = begins, .ends = ends});
    });
  if (options.offload.gradients && options.offload.to_host) host_numerics_ = numerics_of(options.numerics);
  BucketOptions to_buckets = bucket_options(options_, mesh_, *numerics_);
  to_buckets.window_elements = options.offload.window_elements();
  if (options.offload.parameters) to_buckets.values_in = memory_.tier();
  if (options.offload.gradients) to_buckets.gradients_in = memory_.tier();
  buckets_ = std::make_unique<Buckets>(stage_.units(), to_buckets, mesh_, memory_.allocator());
  if (mesh_.layout().zero >= 2) stage_.wrap_units(*buckets_);
  optimizer_ = std::make_unique<Optimizer>(rule_of(options.optimizer), buckets_->owned(), memory_.allocator(), options.seed,
                                           update_queue(), options.optimizer.masters, optimizer_tier());
  updates_ = std::make_unique<Updates>(options.update, *optimizer_, *numerics_, update_queue(), batch_totals_.phantom());
  reducer_ = reducer_of(options, *buckets_, *updates_);
  reducer_->publish();  // with ZeRO-1 and 2, gathers the shards of other ranks: this rank has initialized only its own shard
  for (const auto& axis : mesh_.axes()) axis->record_in(account_.trace());
}

void Training::replace_boundary(const Replacement<ShardBoundary>& with) {
  connections_.boundary = with(std::move(connections_.boundary));
}

void Training::replace_attention(const Replacement<AttentionScheme>& with) {
  connections_.attention = with(std::move(connections_.attention));
}

OptimizerTier Training::optimizer_tier() {
  OptimizerTier tier{.elements = options_.offload.window_elements(),
                     .keeps_old = options_.update == UpdateTime::speculative,
                     .delays = options_.update == UpdateTime::delayed};
  if (options_.offload.optimizer) tier.states = memory_.tier();
  if (options_.offload.optimizer && options_.offload.to_host) tier.compute = memory_.tier();
  if (memory_.tier() || options_.update != UpdateTime::after) tier.traffic = &memory_.updates();
  return tier;
}

Queue Training::update_queue() const {
  Queue queue = options_.kernels.queue();
  if (options_.offload.optimizer && options_.offload.to_host) queue.device = nullptr;
  return queue;
}

RunContext Training::run_context() {
  RunContext run{.queue = options_.kernels.queue(),
                 .memory = memory_.allocator(),
                 .numerics = *numerics_,
                 .compute = options_.compute,
                 .seed = options_.seed};
  connections_.put_into(run);
  run.balance = &balance_;
  return run;
}

Context Training::context(std::int64_t first_sample, std::int64_t samples) {
  const std::int64_t here = mesh_.context().rank(), tokens = tokens_here(), rows = samples * tokens;
  Context context{run_context()};
  context.tokens = {.first_sample = first_sample,
                    .sequence = options_.shape.sequence,
                    .first_token = cut().runs(here).front().first,
                    .tokens = tokens};
  make_tables(cut(), here, samples, options_.batch.packed, context);
  if (context.attention && !options_.kernels.device) context.attention_work = &connections_.attention_work;
  context.after_layer = [this] {
    mesh_.world().poll();
    updates_->progress();
  };
  context.stream = context.tokens;
  context.stream.first_row = connections_.boundary->first_row(rows);
  context.targets = context.typed({rows}, DType::i32, Category::data);
  context.step = static_cast<std::uint32_t>(steps_);
  context.loss = batch_totals_.loss();
  return context;
}

std::unique_ptr<MicroBatch> Training::open(const ReadSamples& read, std::int64_t cursor, std::int64_t place,
                                           std::int64_t samples) {
  auto batch =
      std::make_unique<MicroBatch>(context(place, options_.batch.micro), options_.recompute == Recompute::selective);
  Context& context = batch->context;
  batch->inputs = context.typed(context.targets.shape(), DType::i32, Category::data);
  if (!batch->inputs.phantom() && (stage_.begins() || stage_.ends() || options_.batch.packed || context.attention_work))
    read_rows(read, cursor, samples, cut(), mesh_.context().rank(), *batch);
  return batch;
}

// Divides `samples` samples, beginning with the sample `cursor`, among the replicas, and runs this replica's share through
// the pipeline. Runs all micro-batches of the schedule, unless PipelinePart::ends_before ends the run early.
PipelineTimes Training::run_samples(const ReadSamples& read, std::int64_t cursor, std::int64_t samples,
                                    const PipelineSchedule& schedule, const std::vector<std::size_t>& read_by,
                                    const Prepare& prepare, const std::function<bool(std::int64_t)>& ends_before) {
  const std::int64_t micro = options_.batch.micro, replicas = mesh_.data().size();
  const std::int64_t share = (samples + replicas - 1) / replicas, first = share * mesh_.data().rank();
  const std::int64_t end = std::min(first + share, samples);
  const auto open_micro_batch = [&](std::int64_t i, std::int64_t chunk) {
    const std::int64_t place = first + i * micro;
    const TimingEvent begun = account_.now();
    auto batch = open(read, cursor + place, place, std::clamp<std::int64_t>(end - place, 0, micro));
    account_.opened(i, chunk, begun);
    batch->context.step_tokens = samples * options_.shape.sequence;
    if (has_loss() && chunk == stage_.last_chunk()) batch_totals_.count(batch->targets);
    prepare(*batch);
    return batch;
  };
  const Shape message{connections_.boundary->rows(micro * tokens_here()), options_.shape.width};
  PipelineTimes times =
      run_pipeline(schedule, mesh_.pipeline(), {open_micro_batch, stage_.chunks(), message, read_by, ends_before}, clock_);
  if (options_.kernels.meter) options_.kernels.meter->begins({});
  return times;
}

PipelineTimes Training::run_batch(const ReadSamples& read, const Prepare& prepare) {
  batch_totals_.clear();
  choices_.clear();
  return run_samples(read, samples_, options_.batch.global, schedule_, read_by_, [&](MicroBatch& batch) {
    batch.context.tape = &batch.tape;
    if (options_.offload.activations)
      batch.context.kept_inputs = &batch.kept_inputs.emplace(memory_.allocator(), *memory_.tier(), buckets_->traffic());
    batch.context.choices = &choices_;
    batch.context.loss_scale = options_.scaler.scale;
    prepare(batch);
  });
}

StepResult Training::step(const ReadSamples& read) {
  StepResult result{.step = steps_ + 1, .rate = options_.optimizer.rate.at(steps_), .loss_scale = options_.scaler.scale};
  account_.begin(result.step);
  if (memory_.arena()) memory_.arena()->begin_step();
  const FileTier::Times before = memory_.file_times();
  reducer_->begin(schedule_.micro_batches);
  // The number of unmasked tokens is known only after add_up(), in which the host waits for the device. If the norm were
  // computed after add_up(), the host would have to wait twice. So the norm is computed as if all tokens counted. The norm
  // is corrected below.
  const std::int64_t most_tokens = options_.batch.global * options_.shape.sequence;
  const double usual = 1 / (static_cast<double>(most_tokens) * options_.scaler.scale);
  updates_->begin(result.rate, usual);
  account_.mark(StepAccount::cleared);
  const PipelineTimes times = run_batch(
      read, [&](MicroBatch& batch) { batch.context.on_gradient_ready = [this](Parameter& p) { reducer_->ready(p); }; });
  account_.mark(StepAccount::passed);
  reducer_->finish();
  const SquareSum squares = squares_of_gradients(usual);
  account_.mark(StepAccount::reduced);
  std::vector<std::int64_t> choices = choices_.given_by(mesh_.tensor().rank(), mesh_.tensor().size());
  const std::optional<Outcome> outcome = add_up(most_tokens, squares, choices);
  const bool routed_alike = choices_.take(choices) || batch_totals_.phantom();
  account_.waited();
  if (!outcome) name_first_nan(read);
  result.loss = outcome->loss;
  result.tokens = outcome->tokens;
  const auto tokens = static_cast<double>(std::max<std::int64_t>(result.tokens, 1));
  const double scale = 1 / (tokens * options_.scaler.scale);
  result.gradient_norm = outcome->gradient_norm * (static_cast<double>(most_tokens) / tokens);
  const bool finite = std::isfinite(result.gradient_norm) || batch_totals_.phantom();
  result.skipped = options_.scaler.overflowed(!finite);
  if (!batch_totals_.phantom() && (!std::isfinite(result.loss) || (!finite && !result.skipped))) name_first_nan(read);
  if (!routed_alike)
    throw Error(
        Exit::runtime, "tensor ranks sent the same tokens to different experts",
        fmt::format("in step {}, their counts of choices differ, so their sums over tp have other bits", result.step),
        "use --algorithm auto instead of native, ranks on hosts of one kind, or --numerics exact");
  const double clip =
      options_.optimizer.clip > 0 ? std::min(1.0, options_.optimizer.clip / (result.gradient_norm + 1e-6)) : 1;
  account_.update_begins();
  if (!result.skipped) balance_.step(choices_);  // reads biases from the device at a time when the device has no queued work
  const Updates::Done done = updates_->end(result.rate, scale * clip, result.skipped);
  account_.updated();
  if (done.publishes) reducer_->publish();  // with ZeRO-1 and 2, gathers the values that other ranks updated
  account_.update_ends();
  result.updates = done.sweeps;
  result.rolled_back = done.rolled_back;
  if (memory_.arena()) memory_.arena()->end_step();
  ++steps_;
  samples_ += options_.batch.global;
  const FileTier::Times after = memory_.file_times();
  result.tier_exposed = after.waited - before.waited;
  result.tier_hidden = std::max(after.in_flight - before.in_flight - result.tier_exposed, 0.0);
  account_.settle(times, result);
  activation_bytes_ = times.activation_bytes;
  return result;
}

StepResult Training::skip_step() {
  StepResult result{.step = ++steps_, .loss = NAN, .gradient_norm = NAN, .skipped = true, .updates = 0};
  result.rate = options_.optimizer.rate.at(steps_ - 1);
  result.loss_scale = options_.scaler.scale;
  samples_ += options_.batch.global;
  choices_.clear();  // removes the counts that the repeated step added on this rank
  if (updates_->end(result.rate, 0, true).publishes) reducer_->publish();
  return result;
}

// Sums the batch totals over all ranks. Returns nullopt if a sum on any rank was invalid. In a plan, the loss is NaN,
// because tensors have no storage.
std::optional<Training::Outcome> Training::add_up(std::int64_t most_tokens, const SquareSum& squares,
                                                  std::span<std::int64_t> counts) {
  const BatchTotals::Sums sums = batch_totals_.add_up(mesh_.world(), has_loss(), !trouble_of_sums(), squares, counts);
  if (batch_totals_.phantom()) return Outcome{NAN, most_tokens};
  if (sums.bad_ranks > 0) return std::nullopt;
  const SumSite site{.sum = SumOf::losses, .addends = most_tokens};
  return Outcome{sums.loss * numerics_->unit(site) / std::max(sums.tokens, 1.0), static_cast<std::int64_t>(sums.tokens),
                 numerics_->root(sums.squares)};
}

SquareSum Training::squares_of_gradients(double scale) {
  const OffloadOptions& offload = options_.offload;
  const bool on_host = offload.gradients && offload.to_host;
  const Numerics& numerics = on_host ? *host_numerics_ : *numerics_;
  SquareSum squares = batch_totals_.squares();
  Queue queue = options_.kernels.queue();
  if (on_host) {
    squares.there = nullptr;
    queue.device = nullptr;
  }
  std::vector<ScaledSlice> gradients;
  const auto list = [&](const Parameter& p, const Slice& gradient) {
    gradients.push_back({gradient, scale * numerics_->unit(p.site)});
  };
  const auto add_listed = [&] { numerics.add_squares(std::exchange(gradients, {}), squares, queue); };
  if (!offload.gradients || on_host) {
    buckets_->each_counted(list);
    add_listed();
    return squares;
  }
  for (const Bucket& bucket : buckets_->all())
    buckets_->in_memory(bucket.gradient_shard, Category::grads, Use::read, [&](const Tensor& shard) {
      buckets_->each_counted(bucket, shard, list);
      add_listed();
    });
  return squares;
}

void Training::each_site(const std::function<void(SumSite&)>& visit) {
  stage_.each_site(visit);
  for (const ParameterPointer& p : parameters_) visit(p->site);
}

// Returns the error of this rank's first invalid sum since the last call, or nullopt if all sums were valid.
std::optional<Error> Training::trouble_of_sums() {
  std::optional<Error> trouble;
  each_site([&](SumSite& site) {
    try {
      numerics_->check(site);
    } catch (const Error& error) {
      if (!trouble) trouble = error;
    }
    site.highest = 0;
  });
  return trouble;
}

double Training::evaluate(const ReadSamples& read, std::int64_t samples) { return *evaluate_unless_cut(read, samples, {}); }

std::optional<double> Training::evaluate_unless_cut(const ReadSamples& read, std::int64_t samples,
                                                    const std::function<bool()>& is_cut) {
  const std::int64_t whole = options_.batch.micro * mesh_.data().size(), all = (samples + whole - 1) / whole;
  // The ranks vote on whether to end the evaluation. The result of a vote is read only before the next vote. By then, the
  // last pipeline stage has usually voted too, so no stage waits for the result, and the pipeline does not drain.
  const std::int64_t between_votes = schedule_.parts() > 1 ? 2 * schedule_.parts() : 1;
  std::optional<Axis::Vote> vote;
  bool cut = false;
  const auto ends_before = [&](std::int64_t micro_batch) {
    if (micro_batch == 0 || micro_batch % between_votes != 0) return false;
    if (vote && vote->any()) return cut = true;
    vote = mesh_.world().start_vote(is_cut());
    return false;
  };
  batch_totals_.clear();
  const PipelineSchedule passes = forward_only(pipeline_of(mesh_.layout(), all));
  run_samples(
      read, 0, samples, passes, read_at_latest(passes, mesh_.pipeline().rank()),
      [](MicroBatch& batch) { batch.context.training = false; }, is_cut ? ends_before : std::function<bool(std::int64_t)>());
  if (cut || (vote && vote->any())) {
    trouble_of_sums();  // clears the errors of this evaluation's sums
    return std::nullopt;
  }
  const std::optional<Outcome> outcome =
      add_up(std::max<std::int64_t>(samples, 1) * options_.shape.sequence, batch_totals_.squares());
  if (!outcome)
    throw Error(Exit::runtime, "evaluation produced Inf or NaN",
                fmt::format("after step {}, on rank {} or another rank", steps_, mesh_.world().rank()),
                "train one more step: if it fails too, its error names the layer");
  return outcome->loss;
}

// If the optimizer's weights and the parameters have different types, casts the weights to the parameters' type. Then
// gathers the values as at the end of step().
void Training::publish() {
  optimizer_->publish(update_queue());
  reducer_->publish();
}

void Training::resume_at(std::int64_t steps, std::int64_t samples, bool reads_values) {
  steps_ = steps;
  samples_ = samples;
  if (reads_values)
    reducer_->publish();
  else
    publish();
}

std::int64_t Training::declared_activation_bytes() {
  const Keeps all = declared();
  return all.input + all.inside + all.output;
}

void Training::check_activations() {
  const std::int64_t most = declared_activation_bytes();
  const bool at_most = declared().at_most;
  require(at_most ? activation_bytes_ <= most : activation_bytes_ == most,
          "the layers declared that they keep {}{} bytes of activations, but they keep {}", at_most ? "at most " : "", most,
          activation_bytes_);
}

Keeps Training::declared() {
  Context one{run_context()};
  Tape tape(options_.recompute == Recompute::selective);
  one.tape = &tape;
  std::optional<KeptInputs> kept_inputs;
  if (options_.offload.activations)
    one.kept_inputs = &kept_inputs.emplace(memory_.allocator(), *memory_.tier(), buckets_->traffic());
  one.tokens = {.sequence = options_.shape.sequence, .tokens = tokens_here()};
  return stage_.chunks()[0].keeps(options_.batch.micro * tokens_here(), one);
}

}  // namespace chorale
