// Where the parameters that a rank trains lie: in buckets of whole tensors one after the other, in the order in which their gradients become
// ready. A bucket is what a group of ranks reduces, cuts and gathers at once, so its elements are a multiple of those ranks; each rank's shard of
// it is an even block, which ignores where tensors begin. Parameters share a bucket if their statements name the same stages, and the same axes
// with copies as those that their gradients are summed over.
//
//   bucket   │ gain │ bias │ weight ··············· │ pad │        N = 4:  │ shard 0 │ shard 1 │ shard 2 │ shard 3 │
//             of the stream                                                  cut without regard to the tensors
//
// Which of the tensors are there is the strategy's matter: both whole (data parallelism, ZeRO-1), gradients as shards (ZeRO-2), both (ZeRO-3).
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
    bool counts;  // on this rank, in the norm: on others it is a copy
  };
  // Elements whose gradients are summed over more ranks than the others'. That is done before the group's own sum.
  struct Sum {
    std::int64_t first, count;
    Axis* group;
  };
  std::vector<Place> places;  // first those whose gradients are sums over the rows of the stream
  std::int64_t count = 0;     // of all, and the padding
  AxisSet cut_among = 0;      // the axes of the group
  Axis* group = nullptr;      // whose ranks add its gradients up; with ZeRO each has a shard of them
  std::vector<Sum> sums;
  Axis* other_shards = nullptr;  // ranks with copies of this rank's shard, of which ZeRO makes no use; null: none
  Axis* stages = nullptr;        // the other stages that have it; null: none

  Tensor values, gradients;            // whole, while they are there
  Tensor value_shard, gradient_shard;  // this rank's block: views of those, or kept alone
  std::int64_t waits_for = 0;          // gradients that are not ready

  void bind_values(Tensor whole);  // gives its parameters their places in it; takes them away with an empty one
  void bind_gradients(Tensor whole);
};

struct BucketOptions {
  int zero = 0;
  std::int64_t bytes = 25 << 20;  // of gradients in a bucket, where it need not be one unit of the model
  DType compute = DType::f32, gradient = DType::f32;
  bool gradients = true;  // none of a model that is only read
  Queue queue = {};       // where gradients are added up
};

class Buckets {
 public:
  // Of units of the model, in the order of the forward pass.
  Buckets(const std::vector<std::vector<ParameterPointer>>& units, const BucketOptions& options, const Mesh& mesh,
          Allocator& memory);
  Buckets(const Buckets&) = delete;

  std::vector<Bucket>& all() { return buckets_; }
  Bucket& of(const Parameter& parameter) { return *home_.at(&parameter); }
  const BucketOptions& options() const { return options_; }
  void clear_gradients();
  // What this rank updates: all, or its shards.
  std::vector<Owned> owned() const;
  // The axes along which what this rank owns of a parameter is a copy of another rank's; none for the owner.
  AxisSet copied_along(const Parameter& parameter) const;
  // Calls visit(parameter, gradients) for the elements that this rank alone counts, so that all ranks count each element once.
  void each_counted(const std::function<void(const Parameter&, const Slice&)>& visit) const;

  Tensor new_values(const Bucket& bucket);
  Tensor new_gradients(const Bucket& bucket);  // zeros

 private:
  void allocate(Bucket& bucket);
  static std::int64_t shard(const Bucket& bucket) { return bucket.count / bucket.group->size(); }
  // visit(place, first in the bucket, first in the parameter, count) for what lies within [first, first + count) of the bucket.
  template <class Visit>
  static void each_piece(const Bucket& bucket, std::int64_t first, std::int64_t count, Visit visit);

  BucketOptions options_;
  const Mesh& mesh_;
  Allocator& memory_;
  std::vector<Bucket> buckets_;
  std::map<const Parameter*, Bucket*> home_;
};

}  // namespace chorale
