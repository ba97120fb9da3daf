// Where the parameters that a rank trains lie: in buckets of whole tensors one after the other, in the order in which their gradients become
// ready. A bucket is what the ranks of the data axis reduce, cut and gather at once, so its elements are a multiple of those ranks; each
// rank's shard of it is an even block, which ignores where tensors begin.
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

namespace chorale {

struct Bucket {
  struct Place {
    ParameterPointer parameter;
    std::int64_t first;
  };
  std::vector<Place> places;  // first those whose gradients are sums over the rows of the stream
  std::int64_t stream = 0;    // elements of those
  std::int64_t count = 0;     // of all, and the padding
  bool tied = false;          // the table that the first and the last stage both have

  Tensor values, gradients;            // whole, while they are there
  Tensor value_shard, gradient_shard;  // this rank's block: views of those, or kept alone
  std::int64_t waits_for = 0;          // gradients that are not ready

  void bind_values(Tensor whole);  // gives its parameters their places in it; takes them away with an empty one
  void bind_gradients(Tensor whole);
};

struct BucketOptions {
  int zero = 0;
  std::int64_t rank = 0, ranks = 1;  // of the data axis
  std::int64_t bytes = 25 << 20;     // of gradients in a bucket, where it need not be one unit of the model
  DType compute = DType::f32, gradient = DType::f32;
  bool tied_apart = false;  // the tied table has a bucket of its own
  bool gradients = true;    // none of a model that is only read
  Queue queue = {};         // where gradients are added up
};

class Buckets {
 public:
  // Of units of the model, in the order of the forward pass.
  Buckets(const std::vector<std::vector<ParameterPointer>>& units, const BucketOptions& options, Allocator& memory);
  Buckets(const Buckets&) = delete;

  std::vector<Bucket>& all() { return buckets_; }
  Bucket& of(const Parameter& parameter) { return *home_.at(&parameter); }
  const BucketOptions& options() const { return options_; }
  void clear_gradients();
  // What this rank updates: all, or its shards.
  std::vector<Owned> owned() const;
  // Calls visit(parameter, gradients) for the elements that this rank alone counts among the ranks of the data axis.
  void each_counted(const std::function<void(const Parameter&, const Slice&)>& visit) const;

  Tensor new_values(const Bucket& bucket);
  Tensor new_gradients(const Bucket& bucket);  // zeros

 private:
  void allocate(Bucket& bucket);
  std::int64_t shard(const Bucket& bucket) const { return bucket.count / options_.ranks; }
  // visit(place, first in the bucket, first in the parameter, count) for what lies within [first, first + count) of the bucket.
  template <class Visit>
  static void each_piece(const Bucket& bucket, std::int64_t first, std::int64_t count, Visit visit);

  BucketOptions options_;
  Allocator& memory_;
  std::vector<Bucket> buckets_;
  std::map<const Parameter*, Bucket*> home_;
};

}  // namespace chorale
