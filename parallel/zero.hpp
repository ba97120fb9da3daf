// ZeRO-2 and ZeRO-3 (Rajbhandari et al. 2020). The ranks of a bucket's group keep shards of the gradients (2), and of the
// parameters too (3). They are whole only while their unit of the model computes. A unit is an embedding, a block or the
// head.
//
//   forward    gather i+1 ┄┄ │ unit i │ drop values        the next unit's values travel while this one computes
//   backward   gather i−1 ┄┄ │ unit i │ reduce-scatter its gradients onto the shard, drop both
//
// With ring and N ranks, (N−1)/N elements are sent per parameter: ZeRO-2 once per micro-batch and once per step for the
// values, ZeRO-3 three times per micro-batch. State for f32: 4Ψ + 12Ψ/N bytes (2) and 16Ψ/N bytes (3), plus the live units.
#pragma once
#include "layers/wrapping.hpp"
#include "parallel/reducer.hpp"

namespace chorale {

// A unit: a layer whose gradients, and with ZeRO-3 its values, are whole only while it needs them.
class ZeroUnit final : public WrappingLayer {
 public:
  ZeroUnit(LayerPointer inner, const std::vector<ParameterPointer>& uses, Buckets& buckets);
  // Sets the neighbors in the order of the forward pass, whose values this unit prefetches; null: none.
  void follow(ZeroUnit* before, ZeroUnit* after) { before_ = before, after_ = after; }

  Tensor forward(const Tensor& x, Context& context) override;
  Tensor backward(const Tensor& dy, Context& context) override;

 private:
  void fetch();    // starts to gather the values
  void need();     // waits until they are here
  void release();  // drops them

  Buckets& buckets_;
  std::vector<Bucket*> mine_;
  std::vector<Axis::Pending> under_way_;
  ZeroUnit *before_ = nullptr, *after_ = nullptr;
};

}  // namespace chorale
