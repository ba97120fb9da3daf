// A rank stores its parameters in buckets: tensors one after the other in one buffer, so that one collective call reduces
// or gathers many of them. Buckets are filled in the order of the backward pass, in which gradients become ready. Within a
// bucket, parameters `of_stream` (they act on rows of the residual stream) come first. Parameters may share a bucket if the
// same stages hold them and their gradients are summed over the same axes of the batch.
//
// A bucket is padded to a multiple of its group's size. Each rank of the group has one shard: a block of equal size, which
// may begin inside a tensor.
//
//   bucket   │ gain │ bias │ weight ··············· │ pad │        N = 4:  │ shard 0 │ shard 1 │ shard 2 │ shard 3 │
//             of_stream                                                      cut without regard to the tensors
//
// A rank has storage for whole buckets of values and gradients (data parallelism, ZeRO-1), of values only (ZeRO-2), or of
// neither (ZeRO-3). Under ZeRO-1, only this rank's shard of the gradients holds sums after the reduce-scatter.
#pragma once
#include <map>
#include <vector>

#include "layers/gpt.hpp"
#include "layers/optimizer.hpp"
#include "parallel/mesh.hpp"

namespace chorale {

struct Bucket {
  struct Place {
    ParameterPointer parameter;
    std::int64_t first;  // index of the parameter's first element in the bucket
    // Whether this rank counts the parameter in the gradient norm. Even without ZeRO, each rank of `group` counts only its
    // own shard. False where another tensor-parallel rank or pipeline stage counts its copy.
    bool counts;
  };
  // Elements [first, first + count), whose gradients are also summed over `group` (the tensor-parallel ranks, under
  // sequence parallelism) before the bucket is summed over its own group.
  struct Sum {
    std::int64_t first, count;
    Axis* group;
  };
  std::vector<Place> places;  // the parameters in the bucket, those `of_stream` first
  std::int64_t count = 0;     // elements in the bucket, padding included
  AxisSet cut_among = 0;      // the axes of `group`
  Axis* group = nullptr;      // the ranks that sum this bucket's gradients; with ZeRO each of them owns a shard
  std::vector<Sum> sums;
  Axis* other_shards = nullptr;  // the ranks that hold copies of this rank's shard and add gradients with it; null: none
  Axis* stages = nullptr;        // the stages that hold a tied table and add their gradients; null: one stage holds it

  Tensor values, gradients;            // the whole bucket; empty while only the shard is stored
  Tensor value_shard, gradient_shard;  // this rank's shard: a view of the whole bucket, or storage of its own
  // Gradients that are not ready. Counts one per parameter and micro-batch of the step (ZeRO-0 and 1), or one per parameter
  // for the current micro-batch (ZeRO-2 and 3).
  std::int64_t waits_for = 0;

  // Makes each parameter's value a view of its place in `whole`. If `whole` is empty, the parameters have no values until
  // the next call.
  void bind_values(Tensor whole);
  void bind_gradients(Tensor whole);  // the same for gradients
};

struct BucketOptions {
  int zero = 0;
  std::int64_t bytes = 25 << 20;  // gradient bytes per bucket; ignored with ZeRO-2 and 3, whose buckets end with each unit
  DType compute = DType::f32, gradient = DType::f32;  // types of values and gradients
  bool gradients = true;                              // false: allocates none, for generation
  Queue queue = {};                                   // the device or threads that add gradients to a shard
};

class Buckets {
 public:
  // units: the parameters of each unit (an embedding, a block, the head), in the order of the forward pass.
  Buckets(const std::vector<std::vector<ParameterPointer>>& units, const BucketOptions& options, const Mesh& mesh,
          Allocator& memory);
  Buckets(const Buckets&) = delete;

  std::vector<Bucket>& all() { return buckets_; }
  Bucket& of(const Parameter& parameter) { return *home_.at(&parameter); }
  const BucketOptions& options() const { return options_; }
  void clear_gradients();
  // The ranges of parameters that this rank's optimizer updates: all elements, or with ZeRO those in its shards.
  std::vector<Owned> owned() const;
  // The axes along which this rank's part of a parameter is a copy of another rank's. Empty on the rank whose part is saved.
  AxisSet copied_along(const Parameter& parameter) const;
  // Calls visit(parameter, gradients) for the elements that this rank counts. Over all ranks, each element is counted once.
  void each_counted(const std::function<void(const Parameter&, const Slice&)>& visit) const;

  Tensor new_values(const Bucket& bucket);     // uninitialized storage for a whole bucket
  Tensor new_gradients(const Bucket& bucket);  // zeros

 private:
  void allocate(Bucket& bucket);
  static std::int64_t shard(const Bucket& bucket) { return bucket.count / bucket.group->size(); }
  // Calls visit(place, first in the bucket, first in the parameter, count) for each piece within [first, first + count) of
  // the bucket.
  template <class Visit>
  static void each_piece(const Bucket& bucket, std::int64_t first, std::int64_t count, Visit visit);

  BucketOptions options_;
  const Mesh& mesh_;
  Allocator& memory_;
  std::vector<Bucket> buckets_;
  std::map<const Parameter*, Bucket*> home_;
};

}  // namespace chorale
