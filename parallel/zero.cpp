#include "parallel/zero.hpp"

#include <algorithm>

#include "src/math/cast.hpp"

namespace chorale {
namespace {

class Sharded final : public Reducer {
 public:
  explicit Sharded(Buckets& buckets) : buckets_(buckets) {}

  void begin(std::int64_t) override {
    for (Bucket& bucket : buckets_.all()) bucket.waits_for = static_cast<std::int64_t>(bucket.places.size());
  }

  // Acts once all gradients of a bucket are ready for this micro-batch. Sums the gradients over ranks, adds this rank's
  // block of the sum to its shard, and drops the whole gradients.
  void ready(const Parameter& parameter) override {
    Bucket& bucket = buckets_.of(parameter);
    if (--bucket.waits_for > 0) return;
    bucket.waits_for = static_cast<std::int64_t>(bucket.places.size());
    add_before(bucket);
    const std::int64_t length = bucket.count / bucket.group->size();
    const Tensor sum = bucket.gradients.narrow(length * bucket.group->rank(), length);
    bucket.group->reduce_scatter(bucket.gradients, sum);
    add(sum.slice(), bucket.gradient_shard.slice(), buckets_.options().queue);
    bucket.bind_gradients({});
  }

  void finish() override { add_after(buckets_); }

  void publish() override {
    if (buckets_.options().zero < 3) gather_values(buckets_);  // with ZeRO-3, each unit gathers its own values
  }

 private:
  Buckets& buckets_;
};

}  // namespace

std::unique_ptr<Reducer> sharded_reducer(Buckets& buckets) { return std::make_unique<Sharded>(buckets); }

ZeroUnit::ZeroUnit(LayerPointer inner, const std::vector<ParameterPointer>& uses, Buckets& buckets)
    : WrappingLayer(std::move(inner)), buckets_(buckets) {
  for (const ParameterPointer& p : uses) {
    Bucket* const bucket = &buckets_.of(*p);
    if (std::find(mine_.begin(), mine_.end(), bucket) == mine_.end()) mine_.push_back(bucket);
  }
}

void ZeroUnit::fetch() {
  if (buckets_.options().zero < 3) return;
  for (Bucket* bucket : mine_) {
    if (bucket->values) continue;
    bucket->bind_values(buckets_.new_values(*bucket));
    under_way_.push_back(bucket->group->start_all_gather(bucket->value_shard, bucket->values));
  }
}

void ZeroUnit::need() {
  fetch();
  for (Axis::Pending& pending : under_way_) pending.wait();
  under_way_.clear();
}

void ZeroUnit::release() {
  if (buckets_.options().zero < 3) return;
  for (Bucket* bucket : mine_) bucket->bind_values({});
}

Tensor ZeroUnit::forward(const Tensor& x, Context& context) {
  need();
  if (after_) after_->fetch();
  const Tensor y = inner_->forward(x, context);
  release();
  return y;
}

Tensor ZeroUnit::backward(const Tensor& dy, Context& context) {
  need();
  if (before_) before_->fetch();
  context.weight_gradient([this] {
    for (Bucket* bucket : mine_)
      if (!bucket->gradients) bucket->bind_gradients(buckets_.new_gradients(*bucket));
  });
  const Tensor dx = inner_->backward(dy, context);
  release();
  return dx;
}

}  // namespace chorale
