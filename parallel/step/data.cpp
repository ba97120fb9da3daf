// Data parallelism: the ranks along the data axis hold copies of the same parameters, and each rank processes a part of the
// batch. Gradients are summed over the data axis.
//
//   naive      after the last backward pass, tensor by tensor        nothing overlaps: the rank waits for each call
//   bucketed   backward ─ block 5 ─┬─ block 4 ─┬─ block 3 ─ …        a bucket's sum starts when its last gradient is ready,
//                                  └ bucket 0 ─┴ bucket 1 ─ …        while earlier layers still compute
//
// Chorale needs no helper thread, because Context::after_layer progresses the calls in flight after every layer.
//
// With N ranks, Ψ parameters and ring algorithms, a rank sends 2Ψ(N−1)/N elements per step. ZeRO-1 (Rajbhandari et al. 2020)
// sends the same number of elements. With ZeRO-1, gradient buckets are reduce-scattered, each rank updates only its shard
// (1/N of the optimizer states), and the new values are gathered.
//
// If a layout has R groups of N ranks with the same shards, each shard is on R ranks. These R ranks sum the gradients of the
// shard once per step, bucket by bucket. The sum over the R ranks starts after the sum within each group of N ranks. Each
// rank then sends 2(Ψ/N)(R−1)/R additional elements.
#include <deque>

#include "parallel/step/reducer.hpp"

namespace chorale {
namespace {

class Naive final : public Reducer {
 public:
  Naive(Buckets& buckets, ReductionListener& listener) : buckets_(buckets), listener_(listener) {}
  void begin(std::int64_t) override {
    for (const Bucket& bucket : buckets_.all()) clear(buckets_, bucket, listener_);
  }
  void ready(const Parameter&) override {}
  void finish() override {
    for (Bucket& bucket : buckets_.all()) {
      buckets_.round(bucket);
      for (const Bucket::Place& place : bucket.places) {
        const Tensor gradient = bucket.summed.narrow(place.first, elements_of(place.parameter->local_shape()));
        for (const Bucket::Sum& sum : bucket.sums)
          if (place.first >= sum.first && place.first < sum.first + sum.count) sum.group->all_reduce(gradient);
        bucket.group->all_reduce(gradient);
      }
    }
    SumsAfter(buckets_, listener_).finish();
  }
  void publish() override {}

 private:
  Buckets& buckets_;
  ReductionListener& listener_;
};

class Bucketed final : public Reducer {
 public:
  Bucketed(Buckets& buckets, ReductionListener& listener)
      : buckets_(buckets), listener_(listener), after_(buckets, listener) {}

  void begin(std::int64_t micro_batches) override {
    for (Bucket& bucket : buckets_.all()) {
      clear(buckets_, bucket, listener_);
      bucket.waits_for = micro_batches * static_cast<std::int64_t>(bucket.places.size());
    }
  }

  void ready(const Parameter& parameter) override {
    Bucket& bucket = buckets_.of(parameter);
    if (--bucket.waits_for > 0) return;
    add_before(buckets_, bucket);
    under_way_.push_back({&bucket, scatters() ? bucket.group->start_reduce_scatter(bucket.summed, bucket.gradient_shard)
                                              : bucket.group->start_all_reduce(bucket.summed)});
    if (!listener_.wants_sums()) return;
    // A bucket with a second sum (Bucket::other_shards) stays in the queue, because finish() must begin these second sums in
    // the same order on all ranks.
    const auto is_over = [](SumUnderWay& one) { return !one.bucket->other_shards && one.sum.test(); };
    for (; !under_way_.empty() && is_over(under_way_.front()); under_way_.pop_front())
      after_.tell(*under_way_.front().bucket);
  }

  void finish() override {
    for (const Bucket& bucket : buckets_.all())
      require(bucket.waits_for == 0, "a bucket still waits for {} gradients", bucket.waits_for);
    for (SumUnderWay& one : under_way_) {
      one.sum.wait();
      if (one.bucket->other_shards) after_.start(*one.bucket);
    }
    under_way_.clear();
    after_.finish();
  }

  void publish() override {
    if (scatters()) gather_values(buckets_);
  }

 private:
  bool scatters() const { return buckets_.options().zero == 1; }

  Buckets& buckets_;
  ReductionListener& listener_;
  std::deque<SumUnderWay> under_way_;
  SumsAfter after_;
};

}  // namespace

void add_before(Buckets& buckets, const Bucket& bucket) {
  buckets.round(bucket);
  for (const Bucket::Sum& sum : bucket.sums) sum.group->all_reduce(bucket.summed.narrow(sum.first, sum.count));
}

// A shard in a slow tier is summed only in finish(), because the gradients of all micro-batches must have been written
// first.
void SumsAfter::start(const Bucket& bucket) {
  if (!bucket.other_shards) {
    tell(bucket);
  } else if (!buckets_.away(summed(bucket))) {
    under_way_.push_back({&bucket, bucket.other_shards->start_all_reduce(summed(bucket))});
    begun_.insert(&bucket);
  }
  tell_complete();
}

void SumsAfter::tell_complete() {
  if (!listener_.wants_sums()) return;
  for (; !under_way_.empty() && under_way_.front().sum.test(); under_way_.pop_front()) tell(*under_way_.front().bucket);
}

void SumsAfter::finish() {
  sum_rest(&Bucket::other_shards);
  begun_.clear();
  sum_rest(&Bucket::stages);
}

void SumsAfter::sum_rest(Axis* Bucket::*over) {
  for (const Bucket& bucket : buckets_.all()) {
    Axis* const group = bucket.*over;
    if (!group || begun_.contains(&bucket)) continue;
    const Tensor& sums = summed(bucket);
    if (buckets_.away(sums))
      buckets_.in_memory(sums, Category::grads, Use::both, [&](const Tensor& here) { group->all_reduce(here); });
    else
      under_way_.push_back({&bucket, group->start_all_reduce(sums)});
  }
  for (SumUnderWay& one : under_way_) one.sum.wait();
  under_way_.clear();
}

void gather_values(Buckets& buckets) {
  std::vector<Axis::Pending> under_way;
  for (const Bucket& bucket : buckets.all())
    under_way.push_back(bucket.group->start_all_gather(bucket.value_shard, bucket.values));
  for (Axis::Pending& pending : under_way) pending.wait();
}

std::unique_ptr<Reducer> naive_reducer(Buckets& buckets, ReductionListener& listener) {
  return std::make_unique<Naive>(buckets, listener);
}

std::unique_ptr<Reducer> bucketed_reducer(Buckets& buckets, ReductionListener& listener) {
  return std::make_unique<Bucketed>(buckets, listener);
}

}  // namespace chorale
