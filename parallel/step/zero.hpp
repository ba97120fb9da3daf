// ZeRO-2 and ZeRO-3 (Rajbhandari et al. 2020). Each rank of a bucket's group keeps one gradient shard. With ZeRO-3, the rank
// also keeps one value shard. A unit of the model is an embedding, a block or the head. A unit has full gradients only
// during its backward pass. With ZeRO-3, a unit has full values only during its forward pass and its backward pass.
//
//   forward    gather values i+1 ┄ │ unit i │ drop values i                             gathering and dropping of values:
//   backward   gather values i−1 ┄ │ unit i │ reduce-scatter gradients i, drop both     only under ZeRO-3
//
// While a unit computes, the values of the next K units are gathered (K is BucketOptions::prefetch_units). The unit after
// these K units is read from the slow tier, if values are offloaded. So at most 1 + K units have full values at the same
// time. K determines the order of these calls. K is the same on all ranks, so all ranks make the calls in the same order.
// After the reduce-scatter, a rank adds its block of the sum to its gradient shard.
//
// With N ranks, Ψ parameters and ring algorithms, a rank sends (N−1)/N·Ψ elements in one gather or reduce-scatter of all
// parameters. ZeRO-2 sends this number of elements once per micro-batch for gradients and once per step for values. ZeRO-3
// sends this number three times per micro-batch. In f32, a parameter takes 4 bytes for the weight, 4 bytes for the gradient
// and 8 bytes for Adam's two moments. The total is 4Ψ + 12Ψ/N bytes (ZeRO-2) or 16Ψ/N bytes (ZeRO-3), plus the full tensors
// of the units that compute or are gathered in advance.
//
// Under hpz, a rank keeps its secondary shard of a unit's values after the forward pass (Bucket::near_shard). The backward
// pass gathers these shards among the S near ranks. A rank then sends (S−1)/S·Ψ elements. If the near ranks are on one host,
// these elements do not leave the host. In f32, the secondary shards take 4Ψ/S bytes.
#pragma once
#include "layers/wrapping.hpp"
#include "parallel/step/reducer.hpp"

namespace chorale {

// Wraps one unit. Provides the unit's full values and gradients before the unit computes, and frees the values afterwards.
// The reducer frees the gradients.
class ZeroUnit final : public WrappingLayer {
 public:
  ZeroUnit(LayerPointer inner, const std::vector<ParameterPointer>& uses, Buckets& buckets);
  // Sets the units that precede and follow this unit in the forward pass. A pointer is null if there is no such unit.
  void follow(ZeroUnit* before, ZeroUnit* after) {
    before_ = before;
    after_ = after;
  }

  Tensor forward(const Tensor& x, Context& context) override;
  Tensor backward(const Tensor& dy, Context& context) override;

 private:
  enum class Pass { forward, backward };
  // These functions do nothing under ZeRO-2, which never shards values.
  // Starts to read the unit's shards from a slow tier, unless they are in memory or the read has already been started.
  void read(Pass pass);
  void fetch(Pass pass);     // waits for read(), then starts to gather the unit's values if no gather has started
  void prefetch(Pass pass);  // fetches the next units, and starts to read the unit after these units
  ZeroUnit* next(Pass pass) const { return pass == Pass::forward ? after_ : before_; }
  void need(Pass pass);  // waits until the unit's values have been gathered
  void release();        // frees the unit's full values
  void keep();           // under hpz, copies this rank's secondary shards from the full values
  static bool gathers_near(const Bucket& bucket, Pass pass) { return bucket.near && pass == Pass::backward; }

  struct Part {
    Bucket* bucket;
    Staged shard = {};  // a copy in memory of a shard in a slow tier
    Axis::Pending gathering = {};
  };
  Buckets& buckets_;
  std::vector<Part> mine_;
  ZeroUnit *before_ = nullptr, *after_ = nullptr;
};

}  // namespace chorale
