#include "parallel/buckets.hpp"

#include <algorithm>

namespace chorale {
namespace {

Tensor part_of(const Tensor& whole, const Bucket::Place& place) {
  if (!whole) return {};
  const Shape shape = place.parameter->local_shape();
  return whole.narrow(place.first, elements_of(shape)).view(shape);
}

// Whole tensors in the order of the backward pass, cut where a bucket is full or, for shards, where a unit ends.
std::vector<std::vector<ParameterPointer>> cut(const std::vector<std::vector<ParameterPointer>>& units,
                                               const BucketOptions& o) {
  std::vector<std::vector<ParameterPointer>> all;
  std::int64_t room = 0;
  for (auto unit = units.rbegin(); unit != units.rend(); ++unit) {
    if (o.zero >= 2) room = 0;
    for (auto p = unit->rbegin(); p != unit->rend(); ++p) {
      const bool apart = o.tied_apart && (*p)->name == "embedding.weight";
      const std::int64_t bytes = elements_of((*p)->local_shape()) * size_of(o.gradient);
      if (room <= 0 || apart) all.emplace_back(), room = o.zero >= 2 ? INT64_MAX : o.bytes;
      all.back().push_back(*p);
      room = apart ? 0 : room - bytes;
    }
  }
  return all;
}

}  // namespace

void Bucket::bind_values(Tensor whole) {
  values = std::move(whole);
  for (const Place& place : places) place.parameter->value = part_of(values, place);
}

void Bucket::bind_gradients(Tensor whole) {
  gradients = std::move(whole);
  for (const Place& place : places) place.parameter->gradient = part_of(gradients, place);
}

Buckets::Buckets(const std::vector<std::vector<ParameterPointer>>& units, const BucketOptions& options, Allocator& memory)
    : options_(options), memory_(memory) {
  for (std::vector<ParameterPointer>& parameters : cut(units, options)) {
    Bucket bucket;
    std::stable_partition(parameters.begin(), parameters.end(), [](const ParameterPointer& p) { return p->of_stream; });
    for (const ParameterPointer& p : parameters) {
      bucket.places.push_back({p, bucket.count});
      bucket.count += elements_of(p->local_shape());
      if (p->of_stream) bucket.stream = bucket.count;
      bucket.tied = options.tied_apart && p->name == "embedding.weight";
    }
    bucket.count = (bucket.count + options.ranks - 1) / options.ranks * options.ranks;
    buckets_.push_back(std::move(bucket));
  }
  for (Bucket& bucket : buckets_) {
    for (const Bucket::Place& place : bucket.places) home_[place.parameter.get()] = &bucket;
    allocate(bucket);
  }
}

void Buckets::allocate(Bucket& bucket) {
  const std::int64_t length = shard(bucket), first = length * options_.rank;
  const auto alone = [&](DType dtype, Category category) { return Tensor(memory_, {length}, dtype, category); };
  if (options_.zero >= 3) {
    bucket.value_shard = alone(options_.compute, Category::params);
  } else {
    bucket.bind_values(new_values(bucket));
    bucket.value_shard = bucket.values.narrow(first, length);
  }
  if (options_.gradients && options_.zero >= 2) {
    bucket.gradient_shard = alone(options_.gradient, Category::grads);
  } else if (options_.gradients) {
    bucket.bind_gradients(new_gradients(bucket));
    bucket.gradient_shard = bucket.gradients.narrow(first, length);
  }
  for (const Tensor& padded : {bucket.values, bucket.value_shard, bucket.gradient_shard})
    if (padded) clear(padded);
}

Tensor Buckets::new_values(const Bucket& bucket) {
  return Tensor(memory_, {bucket.count}, options_.compute, Category::params);
}

Tensor Buckets::new_gradients(const Bucket& bucket) {
  const Tensor gradients(memory_, {bucket.count}, options_.gradient, Category::grads);
  clear(gradients);
  return gradients;
}

void Buckets::clear_gradients() {
  for (const Bucket& bucket : buckets_) clear(bucket.gradients ? bucket.gradients : bucket.gradient_shard);
}

template <class Visit>
void Buckets::each_piece(const Bucket& bucket, std::int64_t first, std::int64_t count, Visit visit) {
  for (const Bucket::Place& place : bucket.places) {
    const std::int64_t start = std::max(first, place.first);
    const std::int64_t end = std::min(first + count, place.first + elements_of(place.parameter->local_shape()));
    if (start < end) visit(place, start, start - place.first, end - start);
  }
}

std::vector<Owned> Buckets::owned() const {
  std::vector<Owned> all;
  for (const Bucket& bucket : buckets_) {
    const bool whole = options_.zero == 0;
    const std::int64_t first = whole ? 0 : shard(bucket) * options_.rank, count = whole ? bucket.count : shard(bucket);
    const Tensor &values = whole ? bucket.values : bucket.value_shard,
                 &gradients = whole ? bucket.gradients : bucket.gradient_shard;
    each_piece(bucket, first, count, [&](const Bucket::Place& place, std::int64_t at, std::int64_t within, std::int64_t n) {
      all.push_back({place.parameter, within, n, values.narrow(at - first, n),
                     gradients ? gradients.narrow(at - first, n) : Tensor()});
    });
  }
  return all;
}

void Buckets::each_counted(const std::function<void(const Parameter&, const Slice&)>& visit) const {
  for (const Bucket& bucket : buckets_) {
    const std::int64_t first = shard(bucket) * options_.rank;
    each_piece(bucket, first, shard(bucket), [&](const Bucket::Place& place, std::int64_t at, std::int64_t, std::int64_t n) {
      visit(*place.parameter, bucket.gradient_shard.narrow(at - first, n).slice());
    });
  }
}

}  // namespace chorale
