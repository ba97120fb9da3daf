#include "parallel/step/buckets.hpp"

#include <algorithm>

#include "src/base/round_up.hpp"
#include "src/math/cast.hpp"

namespace chorale {
namespace {

Tensor part_of(const Tensor& whole, const Bucket::Place& place) {
  if (!whole) return {};
  const Shape shape = place.parameter->local_shape();
  return whole.narrow(place.first, elements_of(shape)).view(shape);
}

AxisSet summed_over(const Parameter& p, const Layout& layout) { return layout.axes->set_of(p.summed_over); }

// The key of a parameter: the batch-dividing axes over which its gradient is summed, and the stages that hold it. Parameters
// with equal keys can share a bucket.
using Key = std::pair<AxisSet, std::vector<std::int64_t>>;
Key key_of(const Parameter& p, const Layout& layout) {
  return {summed_over(p, layout) & layout.axes->holding_copies(both_grids), p.stages};
}

// Assigns tensors to buckets in the order of the backward pass, without splitting a tensor. A bucket ends when it is full
// or, with ZeRO-2 and 3, when a unit ends.
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
      if (here.room <= 0) {
        here = {all.size(), o.zero >= 2 ? INT64_MAX : o.bytes};
        all.emplace_back();
      }
      all[here.bucket].push_back(*p);
      here.room -= elements_of((*p)->local_shape()) * size_of(o.gradient);
    }
  }
  return all;
}

// Computes the result of copied_along. Along the axes in `spread`, ranks own different elements, so there are no copies.
AxisSet copies(const Parameter& p, AxisSet spread, const Mesh& mesh) {
  const AxisTable& axes = *mesh.layout().axes;
  const AxisSet cut = axes.set_of(p.cut_by), layers = axes.dividing(Divides::layers);
  const AxisSet same = axes.in_grids(axes.grid_of(cut)) & ~(cut | spread | layers);
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
  summed = gradients && gradients.dtype() != summed_type ? gradients.as(summed_type).narrow(0, count) : gradients;
  for (const Place& place : places) place.parameter->gradient = part_of(gradients, place);
}

Buckets::Buckets(const std::vector<std::vector<ParameterPointer>>& units, const BucketOptions& options, const Mesh& mesh,
                 Allocator& memory)
    : options_(options), mesh_(mesh), memory_(memory) {
  const Layout& layout = mesh.layout();
  for (std::vector<ParameterPointer>& parameters : cut(units, options, layout)) {
    Bucket bucket;
    const auto [copied, stages] = key_of(*parameters.front(), layout);
    bucket.summed_type = options.summed;
    bucket.cut_among = options.zero == 0 ? copied : copied & layout.sharded();
    bucket.group = &mesh.along(bucket.cut_among);
    Axis& others = mesh.along(copied & ~bucket.cut_among);
    if (others.size() > 1) bucket.other_shards = &others;
    if (layout.hpz && options.gradients) bucket.near = &mesh.along(copied & layout.axes->sharding());
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
      bucket.places.push_back({p, bucket.count, copies(*p, copied, mesh) == 0});
      bucket.count += elements;
    }
    const std::int64_t ranks = bucket.group->size() * others.size();
    bucket.count = round_up(bucket.count, ranks);
    bucket.number = buckets_.size();
    buckets_.push_back(std::move(bucket));
  }
  for (Bucket& bucket : buckets_) {
    for (const Bucket::Place& place : bucket.places) home_[place.parameter.get()] = &bucket;
    allocate(bucket);
  }
}

AxisSet Buckets::copied_along(const Parameter& parameter) const {
  const auto home = home_.find(&parameter);  // routing biases are not in a bucket, and are never sharded
  return copies(parameter, options_.zero == 0 || home == home_.end() ? 0 : home->second->cut_among, mesh_);
}

void Buckets::allocate(Bucket& bucket) {
  const std::int64_t length = shard(bucket), first = length * bucket.group->rank();
  const auto alone = [&](Allocator* tier, DType dtype, Category category) {
    return Tensor(tier ? *tier : memory_, {length}, dtype, category);
  };
  if (options_.zero >= 3) {
    bucket.value_shard = alone(options_.values_in, options_.compute, Category::params);
    if (bucket.near)
      bucket.near_shard = Tensor(memory_, {bucket.count / bucket.near->size()}, options_.compute, Category::params);
  } else {
    bucket.bind_values(new_values(bucket));
    bucket.value_shard = bucket.values.narrow(first, length);
  }
  if (options_.gradients && options_.zero >= 2) {
    bucket.gradient_shard = alone(options_.gradients_in, options_.summed, Category::grads);
  } else if (options_.gradients) {
    bucket.bind_gradients(new_gradients(bucket));
    bucket.gradient_shard = bucket.summed.narrow(first, length);
  }
  for (const Tensor& padded : {bucket.values, bucket.value_shard, bucket.gradient_shard})
    if (padded) clear(padded);
}

Tensor Buckets::new_values(const Bucket& bucket) {
  return Tensor(memory_, {bucket.count}, options_.compute, Category::params);
}

Tensor Buckets::new_gradients(const Bucket& bucket) {
  const Tensor gradients = away(bucket.gradient_shard)  // a staging buffer, because a group of one rank writes this buffer
                                                        // to the tier
                               ? Staged(memory_, bucket.count, options_.gradient, Category::grads).tensor()
                               : Tensor(memory_, {bucket.count}, options_.gradient, Category::grads);
  clear(gradients);
  return gradients;
}

// The bucket is rounded block by block. Each block is rounded into a buffer, which is then copied into the bucket. The copy
// overwrites only gradients that have already been rounded. A large bucket is divided into a few large blocks, because each
// kernel launch on a GPU takes time.
void Buckets::round(const Bucket& bucket) {
  if (bucket.summed_type == options_.gradient) return;
  const std::int64_t most = std::min(bucket.count, std::max<std::int64_t>(1 << 16, bucket.count / 64));
  const Tensor buffer(memory_, {most}, bucket.summed_type, Category::workspace);
  for (std::int64_t first = 0; first < bucket.count; first += most) {
    const std::int64_t count = std::min(most, bucket.count - first);
    const Slice piece = buffer.narrow(0, count).slice();
    cast(bucket.gradients.narrow(first, count).slice(), piece, options_.queue);
    cast(piece, bucket.summed.narrow(first, count).slice(), options_.queue);
  }
}

Tensor Buckets::zeros(std::int64_t count) {
  const Tensor zeros(memory_, {count}, options_.summed, Category::grads);
  clear(zeros);
  return zeros;
}

void Buckets::add_to_shard(const Tensor& sum, const Tensor& shard) {
  through_windows(
      {{{shard, Category::grads, true, true}, {sum}}}, options_.window_elements, memory_, traffic_,
      [&](const Window&, std::span<const Tensor> here) { add(here[1].slice(), here[0].slice(), options_.queue); });
}

// A shard in a slow tier need not be cleared, because the shard is overwritten before it is read.
void Buckets::clear_gradients(const Bucket& bucket) {
  if (!away(bucket.gradient_shard)) clear(options_.zero < 2 ? bucket.gradients : bucket.gradient_shard);
}

void Buckets::in_memory(const Tensor& shard, Category category, Use use, const std::function<void(const Tensor&)>& f) {
  if (!away(shard)) return f(shard);
  Staged here = staged(shard, category);
  if (use != Use::write) {
    here.start_read(shard, traffic_);
    here.wait();
  }
  f(here.tensor());
  if (use != Use::read) {
    here.start_write(shard, traffic_);
    here.wait();
  }
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
                 &gradients = whole ? bucket.summed : bucket.gradient_shard;
    each_piece(bucket, first, count, [&](const Bucket::Place& place, std::int64_t at, std::int64_t within, std::int64_t n) {
      all.push_back({place.parameter, within, n, values.narrow(at - first, n),
                     gradients ? gradients.narrow(at - first, n) : Tensor(), bucket.number, values, gradients, at - first});
    });
  }
  return all;
}

Buckets::Range Buckets::counted(const Bucket& bucket) {
  const std::int64_t whole = shard(bucket), first = whole * bucket.group->rank();
  if (!bucket.other_shards) return {first, whole};
  const std::int64_t part = whole / bucket.other_shards->size();
  return {first + part * bucket.other_shards->rank(), part};
}

void Buckets::each_counted(const std::function<void(const Parameter&, const Slice&)>& visit) const {
  for (const Bucket& bucket : buckets_) each_counted(bucket, bucket.gradient_shard, visit);
}

void Buckets::each_counted(const Bucket& bucket, const Tensor& gradients,
                           const std::function<void(const Parameter&, const Slice&)>& visit) const {
  const std::int64_t shard_begins = shard(bucket) * bucket.group->rank();
  const auto [first, count] = counted(bucket);
  each_piece(bucket, first, count, [&](const Bucket::Place& place, std::int64_t at, std::int64_t, std::int64_t n) {
    if (place.counts) visit(*place.parameter, gradients.narrow(at - shard_begins, n).slice());
  });
}

}  // namespace chorale
