// ZeRO-2 and ZeRO-3 (Rajbhandari et al. 2020): the ranks of a bucket's group keep shards of the gradients (2), and of the parameters too (3). What is
// whole is so only while a unit of the model, an embedding, a block, the head, is at work.
//
//   forward    gather i+1 ┄┄ │ unit i │ drop values        the next unit's values are on their way while this one computes
//   backward   gather i−1 ┄┄ │ unit i │ reduce-scatter its gradients onto the shard, drop both
//
// Per micro-batch and parameter, with ring and N ranks: ZeRO-2 sends (N−1)/N once, and as much once a step for the values; ZeRO-3 sends it
// three times. State for f32: 4Ψ + 12Ψ/N and 16Ψ/N bytes, beside the live units.
#pragma once
#include "layers/wrapping.hpp"
#include "parallel/reducer.hpp"

namespace chorale {

// A unit: a layer whose values or gradients are whole only when it needs them.
class ZeroUnit final : public WrappingLayer {
 public:
  ZeroUnit(LayerPointer inner, const std::vector<ParameterPointer>& uses, Buckets& buckets);
  // The neighbours in the order of the forward pass, whose values are fetched ahead; null where there is none.
  void follow(ZeroUnit* before, ZeroUnit* after) { before_ = before, after_ = after; }

  Tensor forward(const Tensor& x, Context& context) override;
  Tensor backward(const Tensor& dy, Context& context) override;

 private:
  void fetch();    // begins to gather
  void need();     // waits until the values are there
  void release();  // drops them

  Buckets& buckets_;
  std::vector<Bucket*> mine_;
  std::vector<Axis::Pending> under_way_;
  ZeroUnit *before_ = nullptr, *after_ = nullptr;
};

}  // namespace chorale
