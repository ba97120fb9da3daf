// Helpers for tests of hybrid sharding and of hpz.
#pragma once
#include "src/memory/memory.hpp"
#include "tests/catch.hpp"
#include "tests/parallel/layouts.hpp"

namespace chorale::test {

// The batch has 16 samples, so that each of 8 replicas has several micro-batches. Gradients are clipped in every step.
inline TrainingOptions hybrid_options(const char* numerics, const Layout& layout, std::int64_t micro_batches = 2) {
  TrainingOptions options = options_for(numerics, layout);
  options.batch.global = 16;
  options.batch.micro = layout.stages() > 1 ? 1 : 16 / layout.replicas() / micro_batches;
  options.optimizer.clip = 0.05;
  return options;
}

// A model whose buckets need padding for 2, 4 and 8 ranks.
inline ModelShape odd_shape() {
  ModelShape shape = small_shape();
  shape.heads = shape.groups = 6;
  shape.width = 30;
  shape.ffn = 42;
  shape.layers = 3;
  return shape;
}

// Returns the results of rank 0. Losses, norms and fingerprints are the same on all ranks.
inline Seen seen_on(const Layout& layout, const TrainingOptions& options, const std::string& algorithm) {
  Seen seen;
  const int ranks = static_cast<int>(layout.ranks());
  ThreadWorld world(ranks);
  CHECK(on_threads(ranks, [&](ThreadRank& me) {
          SystemClock clock;
          const Worlds worlds(open_world(world.transport(me.rank()), clock));
          Seen mine = train(options, Mesh(layout, worlds, {{"", algorithm}}), worlds.memory());
          if (me.rank() == 0) seen = std::move(mine);
        }) == "");
  return seen;
}

// A simulated rank of a layout, without peers and with phantom memory.
struct Pretence {
  PhantomMemory nothing;
  VirtualClock still;
  Training training;
  Pretence(const TrainingOptions& options, const Layout& layout, int rank)
      : training(options,
                 Mesh::pretended(layout, rank, {{"", "threads"}}, {{"", "ring"}}, std::make_shared<const Selector>()),
                 nothing, still) {}
};

// Ψ (the number of parameters) and the size of the tied table. Both include the padding of the buckets.
struct Sizes {
  std::int64_t all = 0, table = 0;
};
inline Sizes sizes_of(Buckets& buckets, std::int64_t ranks) {
  Sizes sizes;
  for (const Bucket& bucket : buckets.all()) {
    std::int64_t count = 0;
    for (const Bucket::Place& place : bucket.places) count += elements_of(place.parameter->local_shape());
    count = (count + ranks - 1) / ranks * ranks;
    CHECK(bucket.count == count);
    sizes.all += count;
    if (bucket.places.front().parameter->tied) sizes.table += count;
  }
  return sizes;
}

}  // namespace chorale::test
