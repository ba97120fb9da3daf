// A rank stores its parameters in buckets. A bucket holds tensors one after the other in one buffer, so that one
// collective call reduces or gathers many of them. At construction, parameters are assigned to buckets in the order of the
// backward pass, in which gradients become ready. Within a bucket, the parameters with `sums` (see below) come first.
// Parameters may share a bucket if the same stages hold them and their gradients are summed over the same axes that divide
// the batch.
//
// The ranks that sum a bucket's gradients are its group. Each rank of the group has one shard: a block of equal size, which
// may begin inside a tensor. If the layout repeats such groups, ranks of other groups hold the same shard. The bucket is
// padded to a multiple of the ranks of all these groups, so that a shard, too, has blocks of equal size.
//
// Under hpz (ZeRO++, Wang et al. 2023) the group also reaches along rep. A bucket then has a second, smaller group: the near
// ranks, along dp and cp. Each of them keeps a secondary shard of the values, which the backward pass gathers.
//
//   dp2.rep2.z3.hpz     shards            │ rank 0 │ rank 1 │ rank 2 │ rank 3 │
//                       secondary shards  │     rank 0      │     rank 1      │
//                                         │     rank 2      │     rank 3      │
//
//   bucket   │ gain │ bias │ weight ··············· │ pad │        N = 4:  │ shard 0 │ shard 1 │ shard 2 │ shard 3 │
//             with sums                                                      cut without regard to the tensors
//
// Without ZeRO and with ZeRO-1, a rank stores whole buckets of values and gradients. With ZeRO-2, the rank stores whole
// buckets of values and its shards of the gradients; with ZeRO-3, its shards of values and gradients. After the
// reduce-scatter of ZeRO-1, only this rank's shard of a gradient bucket holds sums over ranks. The other elements are not
// used until the next step clears them.
//
// A rank's own gradients add up in f32. Before ranks sum them, they may be rounded to bf16, in place:
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
    // Whether this rank counts the parameter's elements in its part of the bucket in the gradient norm. False only for
    // copies that another rank counts: uncut parameters on all tensor-parallel ranks but the first, and the second copy of a
    // tied table.
    bool counts;
  };
  // Elements whose gradients are first summed over other ranks, before the sum over Bucket::group: those of parameters
  // `of_heads` and, under sequence parallelism, of those `of_stream` (parameter.hpp).
  struct Sum {
    std::int64_t first, count;  // elements [first, first + count) of the bucket
    Axis* group;                // the ranks of this sum: the tensor-parallel ranks
  };
  std::size_t number = 0;     // in the order of Buckets::all()
  std::vector<Place> places;  // the parameters in the bucket, those with `sums` first
  std::int64_t count = 0;     // elements in the bucket, padding included
  AxisSet cut_among = 0;      // the axes of `group`
  Axis* group = nullptr;      // the ranks that sum this bucket's gradients; with ZeRO each of them owns a shard
  std::vector<Sum> sums;
  // Further sums of this rank's shard, after the sum over `group`. Null: not needed.
  Axis* other_shards = nullptr;  // over the ranks outside `group` that hold the same shard: along rep
  Axis* stages = nullptr;        // over the two stages that hold a tied table
  Axis* near = nullptr;          // under hpz, the ranks that together keep all values; else null

  Tensor values, gradients;            // the whole bucket; empty while only the shard is stored
  Tensor value_shard, gradient_shard;  // this rank's shard: a view of the whole bucket, or separate storage
  Tensor near_shard;                   // this rank's shard among `near`, of the values in the newest forward pass
  Tensor summed;                       // the whole gradients as ranks sum them: see Buckets::round
  DType summed_type = DType::f32;
  // The number of gradients that are not ready yet. With ZeRO-0 and 1, it starts at parameters × micro-batches in each step;
  // with ZeRO-2 and 3, at parameters in each micro-batch.
  std::int64_t waits_for = 0;
  std::int64_t micro_batches = 0;  // with ZeRO-2 and 3: those of this step whose sums the shard does not have yet

  // Makes each parameter's value a view of its place in `whole`. If `whole` is empty, the parameters have no values until
  // the next call.
  void bind_values(Tensor whole);
  void bind_gradients(Tensor whole);  // the same for gradients
};

struct BucketOptions {
  int zero = 0;
  std::int64_t bytes = 25 << 20;  // gradient bytes per bucket; ignored with ZeRO-2 and 3, whose buckets end with each unit
  DType compute = DType::f32, gradient = DType::f32;  // types of values and gradients
  DType summed = DType::f32;                          // of sums of gradients over ranks, and of shards of gradients
  bool gradients = true;                              // false: allocates none, for generation
  Allocator* values_in = nullptr;                     // the slow tier of the shards of values; null: in memory
  Allocator* gradients_in = nullptr;                  // the same for gradients
  std::int64_t window_elements = 1 << 20;             // of a shard in a slow tier that are in memory at once
  std::int64_t prefetch_units = 1;                    // under ZeRO-3, how many units ahead values are gathered
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
  // The gradients of a bucket become zeros: the whole ones, or with ZeRO-2 and 3 those of this rank's shard.
  void clear_gradients(const Bucket& bucket);
  // The ranges of parameters that this rank's optimizer updates: all elements, or with ZeRO those in its shards.
  std::vector<Owned> owned() const;
  // If several ranks hold copies of the same part of a parameter, the first of them is the part's owner and saves it in
  // checkpoints. Returns the axes along which this rank's coordinates differ from the owner's; empty on the owner.
  AxisSet copied_along(const Parameter& parameter) const;
  // Calls visit(parameter, gradients) for the elements that this rank counts. Over all ranks, each element is counted once,
  // and each rank counts as many elements as without ZeRO.
  void each_counted(const std::function<void(const Parameter&, const Slice&)>& visit) const;
  // The same for one bucket, whose shard of gradients is `shard` or a copy of it.
  void each_counted(const Bucket& bucket, const Tensor& shard,
                    const std::function<void(const Parameter&, const Slice&)>& visit) const;

  Tensor new_values(const Bucket& bucket);                    // uninitialized storage for a whole bucket
  Tensor new_gradients(const Bucket& bucket);                 // zeros
  Tensor zeros(std::int64_t count);                           // in the type of sums
  void add_to_shard(const Tensor& sum, const Tensor& shard);  // which is in a slow tier
  // Whether a shard is in a slow tier.
  bool away(const Tensor& shard) const { return is_away(shard, memory_.device()); }
  // Rounds the whole gradients of a bucket to the type in which ranks sum them, once, to nearest even. The results replace
  // the first half of the gradients in memory; Bucket::summed is a view of them. Does nothing if both types are equal.
  void round(const Bucket& bucket);
  // Memory for a copy of a shard that is in a slow tier.
  Staged staged(const Tensor& shard, Category category) { return {memory_, shard.count(), shard.dtype(), category}; }
  TierTraffic& traffic() { return traffic_; }
  const TierTraffic& traffic() const { return traffic_; }
  // Calls f with a shard, or with a copy in memory if it is in a slow tier.
  void in_memory(const Tensor& shard, Category category, Use use, const std::function<void(const Tensor&)>& f);

 private:
  struct Range {
    std::int64_t first, count;  // elements of a bucket
  };
  void allocate(Bucket& bucket);
  static std::int64_t shard(const Bucket& bucket) { return bucket.count / bucket.group->size(); }
  // The elements that this rank counts: an equal part of its shard if other ranks hold the same shard.
  static Range counted(const Bucket& bucket);
  // Calls visit(place, first in the bucket, first in the parameter, count) for each piece within [first, first + count) of
  // the bucket.
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
