// A rank stores its parameters in buckets: whole tensors one after the other, in the order in which their gradients become
// ready. A group of ranks reduces, shards and gathers a bucket in one call. So the bucket is padded to a multiple of the
// group's size, and each rank's shard is an even block, which may begin inside a tensor. Parameters share a bucket if they
// are on the same stages and have copies along the same axes.
//
//   bucket   │ gain │ bias │ weight ··············· │ pad │        N = 4:  │ shard 0 │ shard 1 │ shard 2 │ shard 3 │
//             of the stream                                                  cut without regard to the tensors
//
// The strategy decides what is stored whole: values and gradients (data parallelism, ZeRO-1), values only (ZeRO-2), or
// neither (ZeRO-3).
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
    std::int64_t first;
    bool counts;  // this rank counts it in the gradient norm; ranks that hold copies do not
  };
  // Elements whose gradients are also summed over another group, before the bucket's own sum.
  struct Sum {
    std::int64_t first, count;
    Axis* group;
  };
  std::vector<Place> places;  // parameters `of_stream` first
  std::int64_t count = 0;     // elements, with the padding
  AxisSet cut_among = 0;      // the axes of the group
  Axis* group = nullptr;      // sums the gradients; with ZeRO each of its ranks has a shard
  std::vector<Sum> sums;
  Axis* other_shards = nullptr;  // ranks that hold copies of this rank's shard; null: none
  Axis* stages = nullptr;        // the stages that hold it, if there are several; else null

  Tensor values, gradients;            // whole, or empty
  Tensor value_shard, gradient_shard;  // this rank's block: a view of the whole tensor, or its own storage
  std::int64_t waits_for = 0;          // gradients that are not ready

  void bind_values(Tensor whole);  // points its parameters' values into `whole`; an empty tensor takes them away
  void bind_gradients(Tensor whole);
};

struct BucketOptions {
  int zero = 0;
  std::int64_t bytes = 25 << 20;  // gradient bytes per bucket; ignored with ZeRO-2 and 3, whose buckets end with each unit
  DType compute = DType::f32, gradient = DType::f32;
  bool gradients = true;  // false for generation
  Queue queue = {};       // where gradients are added
};

class Buckets {
 public:
  // `units` of the model, in the order of the forward pass.
  Buckets(const std::vector<std::vector<ParameterPointer>>& units, const BucketOptions& options, const Mesh& mesh,
          Allocator& memory);
  Buckets(const Buckets&) = delete;

  std::vector<Bucket>& all() { return buckets_; }
  Bucket& of(const Parameter& parameter) { return *home_.at(&parameter); }
  const BucketOptions& options() const { return options_; }
  void clear_gradients();
  // The ranges that this rank updates: everything, or its shards.
  std::vector<Owned> owned() const;
  // The axes along which this rank's part of a parameter is a copy; empty on the rank whose part counts.
  AxisSet copied_along(const Parameter& parameter) const;
  // Calls visit(parameter, gradients) for the elements that this rank counts. Over all ranks, each element is counted once.
  void each_counted(const std::function<void(const Parameter&, const Slice&)>& visit) const;

  Tensor new_values(const Bucket& bucket);
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
