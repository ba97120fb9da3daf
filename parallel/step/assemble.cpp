#include "parallel/step/assemble.hpp"

#include <fmt/format.h>

#include "parallel/step/tensor.hpp"
#include "src/base/error.hpp"

namespace chorale {

void check(const TrainingOptions& o, const Layout& layout) {
  const std::int64_t whole = o.batch.micro * layout.replicas();
  if (o.batch.global % whole != 0) {
    const std::string times = layout.replicas() > 1 ? fmt::format(" × {} replicas", layout.replicas()) : "";
    usage_error(
        "the batch does not divide evenly",
        fmt::format("global-batch-size {} is not a multiple of micro-batch-size {}{}", o.batch.global, o.batch.micro, times),
        fmt::format("try --global-batch-size {}", (o.batch.global / whole + 1) * whole));
  }
  if (layout.context_ranks() > 1 && o.numerics == NumericsKind::exact && !o.context.scheme->exact)
    usage_error("exact numerics need a scheme of context parallelism with the bits of one rank",
                fmt::format("{} merges partial sums of floats", o.context.scheme->name),
                "use --context-scheme gather, or --numerics fast");
  if (o.replicas.reducer == ReducerKind::naive && layout.zero > 0)
    usage_error("the naive reducer does not work with ZeRO", fmt::format("the layout is {}", to_string(layout)),
                "leave out --reducer, or use a layout without ZeRO");
  if (o.memory.partition_activations && (o.recompute != Recompute::full || layout.shards() == 1))
    usage_error("--partition-activations needs full recomputation and several tensor ranks",
                layout.shards() == 1 ? fmt::format("{} has one tensor rank", to_string(layout)) : "recompute is not full",
                "leave out --partition-activations, or give --recompute full and a layout with tp");
  const TokenCut cut(o.shape.sequence, layout.context_ranks(), o.context.cut);
  for (std::int64_t rank = 0; rank < cut.ranks() && o.memory.partition_activations; ++rank)
    if (o.batch.micro * cut.tokens(rank) % layout.shards() != 0)
      usage_error("the kept activations cannot be split evenly among the tensor ranks",
                  fmt::format("micro-batch-size {} × {} tokens is not a multiple of {}", o.batch.micro, cut.tokens(rank),
                              layout.shards()),
                  "choose another micro-batch, or leave out --partition-activations");
  if (!o.optimizer.masters && o.compute != DType::bf16)
    usage_error("only bf16 can be trained without master weights", fmt::format("dtype is {}", name_of(o.compute)),
                o.compute == DType::f16 ? "use --dtype bf16, or leave out --no-master-weights"
                                        : "leave out --no-master-weights: this type has no master copies anyway");
  if (const MaybeMisfit misfit = misfit_of_offload(o.offload, layout, o.kernels.device != nullptr))
    usage_error(misfit->what, misfit->numbers, "try " + misfit->remedy);
  if (o.offload.activations && o.recompute != Recompute::full)
    usage_error("only the inputs of blocks that full recomputation keeps can be offloaded", "recompute is not full",
                "give --recompute full, or leave out activations=file");
  const auto refuse_update = [&](const char* why, const std::string& numbers, const char* fix) {
    const char* const name = name_of(o.update);
    usage_error(fmt::format("--update {} {}", name, why), numbers, fix);
  };
  if (o.update == UpdateTime::overlapped && (o.optimizer.clip > 0 || o.scaler.dynamic))
    refuse_update(
        "needs a factor of the gradients that is known before the backward pass",
        o.optimizer.clip > 0 ? fmt::format("gradients are clipped to a norm of {}", o.optimizer.clip)
                             : "f16 scales its loss",
        o.optimizer.clip > 0 ? "use --clip-grad 0, or --update speculative" : "use --dtype bf16, or --update speculative");
  if (o.update == UpdateTime::overlapped && o.batch.packed)
    refuse_update("needs samples in which every token counts",
                  "--document-mask is given, and borders of documents may mask tokens", "use --update after");
  if (o.update == UpdateTime::delayed && o.scaler.dynamic)
    refuse_update("cannot skip a step", "f16 skips steps whose gradients overflow", "use --dtype bf16");
  if (o.update == UpdateTime::delayed && !o.optimizer.masters)
    refuse_update("needs master copies of the weights", "--no-master-weights is given", "leave out --no-master-weights");
  const bool exact = o.numerics == NumericsKind::exact;
  if (exact && o.compute != DType::f32)
    usage_error("exact numerics compute in f32", fmt::format("dtype is {}", name_of(o.compute)),
                "use --dtype f32, or --numerics fast");
  if (o.replicas.gradient_sums && (exact || o.compute == DType::f64))
    usage_error(exact ? "in exact numerics, gradients are integers" : "with --dtype f64, gradients are f64",
                fmt::format("grad-dtype is {}", name_of(*o.replicas.gradient_sums)),
                fmt::format("leave out --grad-dtype, or use {}", exact ? "--numerics fast" : "--dtype f32"));
}

bool go_together(const TrainingOptions& options, const Layout& layout) {
  try {
    check(options, layout);
    return true;
  } catch (const Error&) {
    return false;
  }
}

namespace {

std::unique_ptr<ShardBoundary> boundary_of(const TrainingOptions& options, const Mesh& mesh) {
  if (mesh.tensor().size() == 1) return std::make_unique<ShardBoundary>();
  if (mesh.layout().sequence) return std::make_unique<SequenceParallel>(mesh.tensor());
  return std::make_unique<TensorParallel>(mesh.tensor(),
                                          options.memory.partition_activations && options.recompute == Recompute::full);
}

}  // namespace

Connections::Connections(const TrainingOptions& options, const Mesh& mesh)
    : cut(options.shape.sequence, mesh.context().size(), options.context.cut),
      boundary(boundary_of(options, mesh)),
      exchange(exchange_of(mesh, options.exchange, &cut)),
      sequences(divided_sequences(mesh.context(), cut)),
      attention(context_scheme_of(mesh, options.context, options.shape, cut)) {}

std::int64_t micro_batches_of(const TrainingOptions& options, const Layout& layout) {
  return options.batch.global / (layout.replicas() * options.batch.micro);
}

TrainingOptions with_micro_batches(TrainingOptions options, const Layout& layout, std::int64_t number) {
  options.batch.global = number * layout.replicas() * options.batch.micro;
  return options;
}

PipelineSchedule schedule_of(const TrainingOptions& o, const Layout& layout) {
  const PipelineShape shape = pipeline_of(layout, micro_batches_of(o, layout));
  const PipelineAlgorithm& row = layout.stages() == 1 ? usual_schedule() : *layout.schedule;
  if (!fits(row, shape))
    usage_error(fmt::format("the schedule {} does not fit", row.name), row.misfit(shape),
                "`chorale show pipeline` lists the others");
  return row.plan(shape);
}

BucketOptions bucket_options(const TrainingOptions& o, const Mesh& mesh, const Numerics& numerics) {
  return {.zero = mesh.layout().zero,
          .bytes = o.replicas.bucket(),
          .compute = o.compute,
          .gradient = numerics.gradient_type(o.compute),
          .summed = o.replicas.gradient_sums.value_or(numerics.gradient_type(o.compute)),
          .prefetch_units = o.replicas.prefetch_units.value_or(1),
          .queue = o.kernels.queue()};
}

std::unique_ptr<Reducer> reducer_of(const TrainingOptions& o, Buckets& buckets, ReductionListener& listener) {
  const int zero = buckets.options().zero;
  if (zero >= 2) return sharded_reducer(buckets, listener);
  if (zero == 0 && o.replicas.reducer == ReducerKind::naive) return naive_reducer(buckets, listener);
  return bucketed_reducer(buckets, listener);
}

}  // namespace chorale
