#include <chorale/training.hpp>

#include "parallel/layout/asked_layout.hpp"
#include "src/base/options.hpp"
#include "src/math/device_kernels.hpp"

namespace chorale {

Queue KernelOptions::queue() const {
  Queue queue = queue_on(device, threads);
  queue.meter = meter;
  queue.timer = timer;
  return queue;
}

void TrainingOptions::declare_numbers(Options& o) {
  o.section("numbers and memory", Effect::speed);
  o.add("dtype", compute, "type of parameters and activations in matrix products")
      .one_of({"f32", "bf16", "f16", "f64"})
      .changes(Effect::work);
  o.add("numerics", numerics, "fast, or exact: the same bits on every layout");
  o.add("recompute", recompute, "activations to recompute in the backward pass instead of keeping them");
}

void TrainingOptions::declare_parallel(Options& o, const AskedLayout& layout) {
  replicas.declare(o, layout);
  o.only_where(
      "ep", layout.has_more_than_one([](const Layout& l) { return l.expert_ranks(); }, "the layout does not divide experts"),
      [&] { exchange.declare(o); });
  o.only_where(
      "cp",
      layout.has_more_than_one([](const Layout& l) { return l.context_ranks(); }, "the layout does not divide sequences"),
      [&] { context.declare(o); });
  memory.declare(o, layout);
}

void ReplicaOptions::declare(Options& o, const AskedLayout& layout) {
  const Option& when =
      o.add("reducer", reducer, "sum the replicas' gradients at the end (naive) or during the backward pass (bucketed)")
          .only_where("zero 0", layout.zero_at_most(0));
  o.add_bytes("bucket-size", "0", bucket_bytes, "gradients reduced in one call; 0: 25 MiB, or one block with ZeRO-2 and 3")
      .range(0, 1e15)
      .only_where("zero 0 or 1", layout.zero_at_most(1))
      .only_with(when, ReducerKind::bucketed);
  o.add("grad-dtype", "auto", gradient_sums,
        "type in which ranks sum gradients and keep shards of them. A rank's own gradients add up in f32, and are then "
        "rounded once. auto: f32 (f64 with --dtype f64, integers in exact numerics)")
      .one_of({"auto", "f32", "bf16"})
      .changes(Effect::work);
  o.add("prefetch-units", "auto", prefetch_units,
        "units (layers) ahead whose values ZeRO-3 gathers, or reads from a file, while one computes; each needs memory. "
        "auto: the fewest with which the machine file predicts the fastest step, 1 without its prices")
      .one_of({"auto", "1", "2", "3", "4", "5", "6", "7", "8"})
      .only_where("zero 3", layout.zero_3());
}

void MemoryOptions::declare(Options& o, const AskedLayout& layout) {
  o.add("contiguous-memory", contiguous,
        "places the activations and gradients that a step makes in one piece of memory, planned from the first step");
  o.add("partition-activations", partition_activations,
        "shard the activations that recomputation keeps over tensor ranks (ZeRO-R)")
      .only_with(o.option("recompute"), Recompute::full)
      .only_where("tensor ranks",
                  layout.has_more_than_one([](const Layout& l) { return l.shards(); }, "the layout has one tensor rank"));
}

}  // namespace chorale
