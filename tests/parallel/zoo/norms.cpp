// Mistakes in the norm of the gradients, and in clipping.
#include "tests/parallel/zoo/mistake.hpp"

namespace chorale::zoo {
namespace {

void clipped(TrainingOptions& o) { o.optimizer.clip = 0.1; }  // clips in every step

}  // namespace

std::vector<Mistake> mistakes_in_norms() {
  return {
      {.about = "the gradient norm counts both copies of a tied table",
       .layouts = {"dp1.pp2", "dp2.pp2.z1", "dp2.pp3.z3"},
       .proof = "step 1: norm",
       .make =
           [](Run& run) {
             for (Bucket& bucket : run.training.buckets().all())
               for (Bucket::Place& place : bucket.places) place.counts = place.counts || bucket.stages;
           }},
      {.about = "the gradient norm counts gains and shifts once for each tensor rank",
       .layouts = {"dp1.tp2", "dp2.tp3", "dp2.tp2.z1"},
       .proof = "step 1: norm",
       .make =
           [](Run& run) {
             for (Bucket& bucket : run.training.buckets().all())
               for (Bucket::Place& place : bucket.places) place.counts = true;
           }},
      {.about = "each rank clips its gradient by a norm of its own, such as that of its shard",
       .layouts = {"dp1.tp2", "dp1.pp2", "dp2.z1"},
       .proof = "differs",
       .setting = clipped,
       .change = [](TrainingOptions& o, const Mesh& mesh) { o.optimizer.clip *= 1 + mesh.world().rank(); }},
      {.about = "gradients are clipped before they are divided by a loss scale of 1024",
       .layouts = {"dp1", "dp2.z1"},
       .proof = "step 1: block.0.attention.norm.gain differs",
       .setting = clipped,
       .change = [](TrainingOptions& o, const Mesh&) { o.optimizer.clip /= 1024; }},
  };
}

}  // namespace chorale::zoo
