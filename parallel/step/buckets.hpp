// A rank stores its parameters in buckets. A bucket is one buffer that holds several tensors one after the other, so that
// one collective call reduces or gathers all of these tensors. At construction, parameters are assigned to buckets in the
// order in which the backward pass completes their gradients. Within a bucket, parameters that need the additional sums of
// Bucket::sums come first. Parameters can share a bucket if they are on the same pipeline stages, and if their gradients are
// summed over the same batch-dividing axes.
//
// A bucket's group is the set of ranks that sum the bucket's gradients. Each rank of the group has one shard. All shards
// have equal size, and a shard can begin inside a tensor. If the layout has several such groups (along rep), each shard is
// on one rank of every group. The bucket is padded to a multiple of the number of ranks in all these groups, so that each
// shard can also be divided evenly.
//
// Under hpz (ZeRO++, Wang et al. 2023) the group also extends along rep. A bucket then has a second, smaller group along dp
// and cp, whose ranks are called near ranks. Each near rank keeps a secondary shard of the values. The backward pass gathers
// the values from the secondary shards.
//
//   dp2.rep2.z3.hpz     shards            │ rank 0 │ rank 1 │ rank 2 │ rank 3 │
//                       secondary shards  │     rank 0      │     rank 1      │
//                                         │     rank 2      │     rank 3      │
//
//   bucket   │ gain │ bias │ weight ··············· │ pad │        N = 4:  │ shard 0 │ shard 1 │ shard 2 │ shard 3 │
//             with sums                                                      split without regard to tensors
//
// Without ZeRO and with ZeRO-1, a rank stores full buckets of values and gradients. With ZeRO-2, the rank stores full
// buckets of values, but only its gradient shards. With ZeRO-3, the rank stores only its value shards and gradient shards.
// After the reduce-scatter of ZeRO-1, only this rank's shard of a gradient bucket holds sums over ranks. The rest of the
// bucket is unused until the next step clears it.
//
// Each rank accumulates its local gradients in f32, in f64 for f64 models, or as integers in exact numerics. Before the sum
// over ranks, f32 gradients can be rounded to bf16 in place:
//
//   bucket   │ f32 ················│   round   │ bf16 ····│ unused ··│   the sums over ranks, and the shards, are bf16
#pragma once
#include <map>
#include <vector>

#include "layers/gpt.hpp"
#include "layers/optimizer.hpp"
#include "parallel/mesh/mesh.hpp"
#include "src/memory/on_host.hpp"

namespace chorale {

struct Bucket {
  struct Place {
    ParameterPointer parameter;
    std::int64_t first;  // index of the parameter's first element in the bucket
    // Whether this rank includes its elements of the parameter in the gradient norm. False only for copies that a different
    // rank includes. Such copies are unsharded parameters on all tensor-parallel ranks except the first, and the second copy
    // of a tied embedding table.
    bool counts;
  };
  // A range of elements. Their gradients are summed over the tensor-parallel ranks before the sum over Bucket::group. These
  // elements belong to parameters marked `of_heads` and, under sequence parallelism, to parameters marked `of_stream`
  // (parameter.hpp).
  struct Sum {
    std::int64_t first, count;  // elements [first, first + count) of the bucket
    Axis* group;                // the group of this sum: the tensor-parallel ranks
  };
  std::size_t number = 0;     // index in Buckets::all()
  std::vector<Place> places;  // the parameters in the bucket; those in `sums` come first
  std::int64_t count = 0;     // number of elements in the bucket, including padding
  AxisSet cut_among = 0;      // the axes along which `group` extends
  Axis* group = nullptr;      // the ranks that sum this bucket's gradients; with ZeRO, each rank owns a shard
  std::vector<Sum> sums;
  // After the sum over `group`, this rank's shard is also summed over these groups. If a pointer is null, there is no such
  // sum.
  Axis* other_shards = nullptr;  // along rep: the ranks outside `group` with the same shard
  Axis* stages = nullptr;        // the two stages that hold a tied embedding table
  Axis* near = nullptr;          // with hpz, the near ranks, which together keep all values; without hpz, null

  Tensor values, gradients;            // the full bucket; empty while only the shard is stored
  Tensor value_shard, gradient_shard;  // this rank's shard: a view of the full bucket, or separate storage
  Tensor near_shard;                   // this rank's secondary shard of the values, from the newest forward pass
  Tensor summed;                       // the full gradients in the type of sums over ranks (Buckets::round)
  DType summed_type = DType::f32;
  // The number of gradients that are not ready yet. With ZeRO-0 and 1, each step resets it to parameters × micro-batches.
  // With ZeRO-2 and 3, each micro-batch resets it to the number of parameters.
  std::int64_t waits_for = 0;
  std::int64_t micro_batches = 0;  // with ZeRO-2 and 3, the number of this step's micro-batches that must still be added to
                                   // the shard

  // Makes each parameter's value a view of its elements in `whole`, the values of the full bucket. If `whole` is empty, the
  // parameters have no values until the next call.
  void bind_values(Tensor whole);
  void bind_gradients(Tensor whole);  // makes each gradient a view of its elements in `whole`
};

struct BucketOptions {
  int zero = 0;
  std::int64_t bytes = 25 << 20;  // size of a bucket's gradients; with ZeRO-2 and 3, a bucket instead ends with each unit
  DType compute = DType::f32, gradient = DType::f32;  // types of values and gradients
  DType summed = DType::f32;                          // type of gradient sums over ranks, and of gradient shards
  bool gradients = true;                              // if false, allocates no gradients, for generation
  Allocator* values_in = nullptr;                     // the slow tier that holds value shards; null if they are in memory
  Allocator* gradients_in = nullptr;                  // the slow tier that holds gradient shards; null if they are in memory
  std::int64_t window_elements = 1 << 20;             // number of elements of an offloaded shard that are in memory at the
                                                      // same time
  std::int64_t prefetch_units = 1;                    // with ZeRO-3, number of units gathered in advance
  Queue queue = {};                                   // the device or threads that add gradients to a shard
};

class Buckets {
 public:
  // units: the parameters of each unit of the model, in the order of the forward pass. A unit is an embedding, a block or
  // the head.
  Buckets(const std::vector<std::vector<ParameterPointer>>& units, const BucketOptions& options, const Mesh& mesh,
          Allocator& memory);
  Buckets(const Buckets&) = delete;

  std::vector<Bucket>& all() { return buckets_; }
  Bucket& of(const Parameter& parameter) { return *home_.at(&parameter); }
  const BucketOptions& options() const { return options_; }
  // Sets a bucket's full gradients to zero. With ZeRO-2 and 3, instead sets this rank's gradient shard to zero.
  void clear_gradients(const Bucket& bucket);
  // Returns the ranges of parameters that this rank's optimizer updates. Without ZeRO, these ranges contain all elements.
  // With ZeRO, they contain the elements in this rank's shards.
  std::vector<Owned> owned() const;
  // If several ranks hold copies of the same part of a parameter, the first of these ranks owns the part and saves it in
  // checkpoints. Returns the axes along which this rank's coordinates differ from the owner's; empty on the owner.
  AxisSet copied_along(const Parameter& parameter) const;
  // Calls visit(parameter, gradients) for the elements that this rank contributes to the gradient norm. Over all ranks, each
  // element is visited once.
  void each_counted(const std::function<void(const Parameter&, const Slice&)>& visit) const;
  // Like each_counted above, but visits only the elements of one bucket. `shard`: the bucket's gradient shard, or a copy of
  // this shard.
  void each_counted(const Bucket& bucket, const Tensor& shard,
                    const std::function<void(const Parameter&, const Slice&)>& visit) const;

  Tensor new_values(const Bucket& bucket);                    // uninitialized storage for a full bucket
  Tensor new_gradients(const Bucket& bucket);                 // zeros for a full bucket
  Tensor zeros(std::int64_t count);                           // zeros in the type of gradient sums
  void add_to_shard(const Tensor& sum, const Tensor& shard);  // adds to a shard in a slow tier
  // Whether a shard is in a slow tier.
  bool away(const Tensor& shard) const { return is_away(shard, memory_.device()); }
  // Rounds a bucket's full gradients to the type in which gradients are summed over ranks. Each element is rounded once, to
  // nearest even. The results overwrite the first half of the gradients' memory, and Bucket::summed is a view of the
  // results. Does nothing if both types are equal.
  void round(const Bucket& bucket);
  // Allocates a staging buffer in memory for a shard. The shard itself is stored in a slow tier.
  Staged staged(const Tensor& shard, Category category) { return {memory_, shard.count(), shard.dtype(), category}; }
  TierTraffic& traffic() { return traffic_; }
  const TierTraffic& traffic() const { return traffic_; }
  // Calls f with a shard. If the shard is in a slow tier, f receives a copy in the rank's memory.
  void in_memory(const Tensor& shard, Category category, Use use, const std::function<void(const Tensor&)>& f);

 private:
  struct Range {
    std::int64_t first, count;  // elements of a bucket
  };
  void allocate(Bucket& bucket);
  static std::int64_t shard(const Bucket& bucket) { return bucket.count / bucket.group->size(); }
  // Returns the elements that this rank includes in the gradient norm: the rank's shard, or an equal part of the shard if
  // several ranks hold this shard.
  static Range counted(const Bucket& bucket);
  // Finds the parameters that overlap the bucket's elements in [`first`, `first` + `count`). For each overlap, calls
  // visit(place, first element in the bucket, first element in the parameter, number of elements).
  template <class Visit>
  static void each_piece(const Bucket& bucket, std::int64_t first, std::int64_t count, Visit visit);

  BucketOptions options_;
  const Mesh& mesh_;
  Allocator& memory_;
  std::vector<Bucket> buckets_;
  TierTraffic traffic_;
  std::map<const Parameter*, Bucket*> home_;
};

}  // namespace chorale
