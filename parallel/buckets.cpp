#include "parallel/buckets.hpp"

#include <algorithm>

namespace chorale {
namespace {

Tensor part_of(const Tensor& whole, const Bucket::Place& place) {
  if (!whole) return {};
  const Shape shape = place.parameter->local_shape();
  return whole.narrow(place.first, elements_of(shape)).view(shape);
}

AxisSet summed_over(const Parameter& p, const Layout& layout) { return set_of(*layout.axes, p.summed_over); }

// The axes, among those that divide the batch, over which a gradient is summed; and the parameter's stages. Parameters with
// equal keys may share a bucket.
using Key = std::pair<AxisSet, std::vector<std::int64_t>>;
Key key_of(const Parameter& p, const Layout& layout) {
  return {summed_over(p, layout) & holding_copies(*layout.axes, both_grids), p.stages};
}

// Assigns whole tensors to buckets in the order of the backward pass. A bucket ends when it is full; with ZeRO-2 and 3, when
// a unit ends.
std::vector<std::vector<ParameterPointer>> cut(const std::vector<std::vector<ParameterPointer>>& units,
                                               const BucketOptions& o, const Layout& layout) {
  struct Open {
    std::size_t bucket;
    std::int64_t room;
  };
  std::vector<std::vector<ParameterPointer>> all;
  std::map<Key, Open> open;
  for (auto unit = units.rbegin(); unit != units.rend(); ++unit) {
    if (o.zero >= 2) open.clear();
    for (auto p = unit->rbegin(); p != unit->rend(); ++p) {
      Open& here = open.try_emplace(key_of(**p, layout), Open{0, 0}).first->second;
      if (here.room <= 0) here = {all.size(), o.zero >= 2 ? INT64_MAX : o.bytes}, all.emplace_back();
      all[here.bucket].push_back(*p);
      here.room -= elements_of((*p)->local_shape()) * size_of(o.gradient);
    }
  }
  return all;
}

// See copied_along. Along the axes in `spread`, ranks own different elements, so there are no copies.
AxisSet copies(const Parameter& p, AxisSet spread, const Mesh& mesh) {
  const AxisTable& axes = *mesh.layout().axes;
  const AxisSet cut = set_of(axes, p.cut_by), layers = dividing(axes, Divides::layers);
  const AxisSet same = axes_of(axes, grid_of(axes, cut)) & ~(cut | spread | layers);
  AxisSet found = mesh.pipeline().rank() == p.stages.front() ? 0 : layers;
  for (std::size_t row = 0; row < axes.size(); ++row)
    if (contains(same, row) && mesh.place()[row] > 0) found |= 1U << row;
  return found;
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

Buckets::Buckets(const std::vector<std::vector<ParameterPointer>>& units, const BucketOptions& options, const Mesh& mesh,
                 Allocator& memory)
    : options_(options), mesh_(mesh), memory_(memory) {
  const Layout& layout = mesh.layout();
  for (std::vector<ParameterPointer>& parameters : cut(units, options, layout)) {
    Bucket bucket;
    const auto [copied, stages] = key_of(*parameters.front(), layout);
    bucket.cut_among = options.zero == 0 ? copied : copied & sharding(*layout.axes);
    bucket.group = &mesh.along(bucket.cut_among);
    if (Axis& others = mesh.along(copied & ~bucket.cut_among); others.size() > 1) bucket.other_shards = &others;
    if (stages.size() > 1) bucket.stages = &mesh.ends();
    const auto further = [&, copied = copied](const ParameterPointer& p) { return summed_over(*p, layout) & ~copied; };
    std::ranges::stable_partition(parameters, [&](const ParameterPointer& p) { return further(p) != 0; });
    for (const ParameterPointer& p : parameters) {
      const std::int64_t elements = elements_of(p->local_shape());
      if (Axis& more = mesh.along(further(p)); more.size() > 1) {
        const bool goes_on = !bucket.sums.empty() && bucket.sums.back().group == &more &&
                             bucket.sums.back().first + bucket.sums.back().count == bucket.count;
        if (!goes_on) bucket.sums.push_back({bucket.count, 0, &more});
        bucket.sums.back().count += elements;
      }
      bucket.places.push_back({p, bucket.count, copies(*p, bucket.cut_among, mesh) == 0});
      bucket.count += elements;
    }
    const std::int64_t ranks = bucket.group->size();
    bucket.count = (bucket.count + ranks - 1) / ranks * ranks;
    buckets_.push_back(std::move(bucket));
  }
  for (Bucket& bucket : buckets_) {
    for (const Bucket::Place& place : bucket.places) home_[place.parameter.get()] = &bucket;
    allocate(bucket);
  }
}

AxisSet Buckets::copied_along(const Parameter& parameter) const {
  const auto home = home_.find(&parameter);  // biases of experts are in no bucket, and never sharded
  return copies(parameter, options_.zero == 0 || home == home_.end() ? 0 : home->second->cut_among, mesh_);
}

void Buckets::allocate(Bucket& bucket) {
  const std::int64_t length = shard(bucket), first = length * bucket.group->rank();
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
    const std::int64_t first = whole ? 0 : shard(bucket) * bucket.group->rank(),
                       count = whole ? bucket.count : shard(bucket);
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
    const std::int64_t first = shard(bucket) * bucket.group->rank();
    each_piece(bucket, first, shard(bucket), [&](const Bucket::Place& place, std::int64_t at, std::int64_t, std::int64_t n) {
      if (place.counts) visit(*place.parameter, bucket.gradient_shard.narrow(at - first, n).slice());
    });
  }
}

}  // namespace chorale
