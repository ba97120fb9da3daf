// ZeRO-2 and ZeRO-3 (Rajbhandari et al. 2020). Each rank of a bucket's group keeps one gradient shard. With ZeRO-3, the rank
// also keeps one value shard. A unit of the model is an embedding, a block or the head. A unit has full gradients only
// during its backward pass. With ZeRO-3, a unit has full values only during its forward pass and its backward pass.
//
//   forward    gather values i+1 ┄ │ unit i │ drop values i                             gathering and dropping of values:
//   backward   gather values i−1 ┄ │ unit i │ reduce-scatter gradients i, drop both     only under ZeRO-3
//
// While a unit computes, the values of the next K units are gathered (K is BucketOptions::prefetch_units). The unit after
// these K units is read from the slow tier, if values are offloaded. So at most 1 + K units have full values at the same
// time. K determines the order of these calls. K is the same on all ranks, so all ranks make the calls in the same order.
// After the reduce-scatter, a rank adds its block of the sum to its gradient shard.
//
// With N ranks, Ψ parameters and ring algorithms, a rank sends (N−1)/N·Ψ elements in one gather or reduce-scatter of all
// parameters. ZeRO-2 sends this number of elements once per micro-batch for gradients and once per step for values. ZeRO-3
// sends this number three times per micro-batch. In f32, a parameter takes 4 bytes for the weight, 4 bytes for the gradient
// and 8 bytes for Adam's two moments. The total is 4Ψ + 12Ψ/N bytes (ZeRO-2) or 16Ψ/N bytes (ZeRO-3), plus the full tensors
// of the units that compute or are gathered in advance.
//
// Under hpz, a rank keeps its secondary shard of a unit's values after the forward pass (Bucket::near_shard). The backward
// pass gathers these shards among the S near ranks. A rank then sends (S−1)/S·Ψ elements. If the near ranks are on one host,
// these elements do not leave the host. In f32, the secondary shards take 4Ψ/S bytes.
#include <algorithm>
#include <set>
#include <utility>

#include "layers/wrapping.hpp"
#include "parallel/step/reducer.hpp"
#include "src/math/cast.hpp"

namespace chorale {
namespace {

class Sharded final : public Reducer {
 public:
  Sharded(Buckets& buckets, ReductionListener& listener)
      : buckets_(buckets), listener_(listener), after_(buckets, listener) {}

  void begin(std::int64_t micro_batches) override {
    for (Bucket& bucket : buckets_.all()) {
      bucket.waits_for = static_cast<std::int64_t>(bucket.places.size());
      bucket.micro_batches = micro_batches;
    }
    begun_.clear();
  }

  // Does nothing until all of a bucket's gradients are ready for this micro-batch. Then sums the gradients over ranks, adds
  // this rank's block of the sum to its shard, and drops the full gradients.
  void ready(const Parameter& parameter) override {
    Bucket& bucket = buckets_.of(parameter);
    if (--bucket.waits_for > 0) return;
    bucket.waits_for = static_cast<std::int64_t>(bucket.places.size());
    add_before(buckets_, bucket);
    const std::int64_t length = bucket.count / bucket.group->size();
    const Tensor sum = bucket.summed.narrow(length * bucket.group->rank(), length);
    bucket.group->reduce_scatter(bucket.summed, sum);
    const bool is_first = begun_.insert(&bucket).second, is_last = --bucket.micro_batches == 0;
    if (is_first) clear(buckets_, bucket, listener_);
    if (buckets_.away(bucket.gradient_shard))
      add_in_tier(bucket, sum, is_first);
    else
      add(sum.slice(), bucket.gradient_shard.slice(), buckets_.options().queue);
    bucket.bind_gradients({});
    if (!is_last) return;
    summed_ = &bucket;
    if (!writing_) begin_after();
  }

  void finish() override {
    end_writing();
    after_.finish();
  }

  void publish() override {
    if (buckets_.options().zero < 3) gather_values(buckets_);  // with ZeRO-3, each unit gathers its own values
  }

 private:
  // In the first micro-batch of a step, the shard is zero, so it need not be read. The sum of the first micro-batch is
  // written while the next unit computes. The sums of later micro-batches are added to the shard window by window.
  void add_in_tier(Bucket& bucket, const Tensor& sum, bool is_first) {
    end_writing();
    if (!is_first) return buckets_.add_to_shard(sum, bucket.gradient_shard);
    if (bucket.group->size() == 1) {
      add_zeros(sum);
      writing_ = Staged(sum, Category::grads);
    } else {
      writing_ = buckets_.staged(bucket.gradient_shard, Category::grads);
      clear(writing_.tensor());
      add(sum.slice(), writing_.tensor().slice(), buckets_.options().queue);
    }
    writing_.start_write(bucket.gradient_shard, buckets_.traffic());
  }
  // Adds zeros, which turns −0 into 0. So the result is bit-identical to the result of adding the sum to a cleared shard.
  void add_zeros(const Tensor& sum) {
    if (!is_floating(sum.dtype())) return;
    const std::int64_t most = std::min<std::int64_t>(sum.count(), 1 << 16);
    const Tensor zeros = buckets_.zeros(most);
    for (std::int64_t first = 0; first < sum.count(); first += most) {
      const std::int64_t count = std::min(most, sum.count() - first);
      add(zeros.narrow(0, count).slice(), sum.narrow(first, count).slice(), buckets_.options().queue);
    }
  }
  void end_writing() {
    writing_.wait();
    writing_ = {};
    begin_after();
  }
  void begin_after() {
    if (const Bucket* const bucket = std::exchange(summed_, nullptr)) after_.start(*bucket);
  }

  Buckets& buckets_;
  ReductionListener& listener_;
  std::set<const Bucket*> begun_;   // buckets whose shard already holds sums of this step
  Staged writing_;                  // the sum that is being written to the tier
  const Bucket* summed_ = nullptr;  // a bucket to which all micro-batches have been added; null after the call of
                                    // after_.start()
  SumsAfter after_;
};

// Wraps one unit. Provides the unit's full values and gradients before the unit computes, and frees the values afterwards.
// The reducer frees the gradients.
class ZeroUnit final : public WrappingLayer {
 public:
  ZeroUnit(LayerPointer inner, const std::vector<ParameterPointer>& uses, Buckets& buckets)
      : WrappingLayer(std::move(inner)), buckets_(buckets) {
    for (const ParameterPointer& p : uses) {
      Bucket* const bucket = &buckets_.of(*p);
      if (std::ranges::find(mine_, bucket, &Part::bucket) == mine_.end()) mine_.push_back({bucket});
    }
  }

  // This unit follows `before` in the forward pass.
  void follow(ZeroUnit& before) {
    before_ = &before;
    before.after_ = this;
  }

  Tensor forward(const Tensor& x, Context& context) override {
    need(Pass::forward);
    prefetch(Pass::forward);
    const Tensor y = inner_->forward(x, context);
    if (context.tape) keep();  // a backward pass follows
    release();
    return y;
  }

  Tensor backward(const Tensor& dy, Context& context) override {
    need(Pass::backward);
    prefetch(Pass::backward);
    context.weight_gradient([this] {
      for (const Part& part : mine_)
        if (!part.bucket->gradients) part.bucket->bind_gradients(buckets_.new_gradients(*part.bucket));
    });
    const Tensor dx = inner_->backward(dy, context);
    release();
    return dx;
  }

 private:
  enum class Pass { forward, backward };

  // These functions do nothing under ZeRO-2, which never shards values.
  // Starts to read the unit's shards from a slow tier, unless they are in memory or the read has already been started.
  void read(Pass pass) {
    if (buckets_.options().zero < 3) return;
    for (Part& part : mine_) {
      if (!buckets_.away(part.bucket->value_shard) || part.shard || gathers_near(*part.bucket, pass)) continue;
      part.shard = buckets_.staged(part.bucket->value_shard, Category::params);
      part.shard.start_read(part.bucket->value_shard, buckets_.traffic());
    }
  }

  // Waits for read(), then starts to gather the unit's values if no gather has started.
  void fetch(Pass pass) {
    read(pass);
    if (buckets_.options().zero < 3) return;
    for (Part& part : mine_) {
      Bucket& bucket = *part.bucket;
      if (bucket.values || (part.shard && bucket.group->size() == 1)) continue;
      part.shard.wait();
      bucket.bind_values(buckets_.new_values(bucket));
      const bool near = gathers_near(bucket, pass);
      part.gathering = (near ? bucket.near : bucket.group)
                           ->start_all_gather(near         ? bucket.near_shard
                                              : part.shard ? part.shard.tensor()
                                                           : bucket.value_shard,
                                              bucket.values);
    }
  }

  // Fetches the next units, and starts to read the unit after these units.
  // All reads begin before the first fetch() waits for a read.
  void prefetch(Pass pass) {
    std::vector<ZeroUnit*> ahead;
    const std::int64_t most = buckets_.options().prefetch_units;
    for (ZeroUnit* unit = next(pass); unit && std::ssize(ahead) <= most; unit = unit->next(pass)) ahead.push_back(unit);
    for (ZeroUnit* unit : ahead) unit->read(pass);
    if (std::ssize(ahead) > most) ahead.pop_back();
    for (ZeroUnit* unit : ahead) unit->fetch(pass);
  }

  ZeroUnit* next(Pass pass) const { return pass == Pass::forward ? after_ : before_; }

  // Waits until the unit's values have been gathered.
  void need(Pass pass) {
    fetch(pass);
    for (Part& part : mine_) {
      part.gathering.wait();
      if (!part.shard || part.bucket->values) continue;
      part.shard.wait();
      part.bucket->bind_values(part.shard.tensor());
    }
  }

  // Frees the unit's full values.
  void release() {
    if (buckets_.options().zero < 3) return;
    for (Part& part : mine_) {
      part.bucket->bind_values({});
      part.shard = {};
    }
  }

  // Under hpz, copies this rank's secondary shards from the full values.
  void keep() {
    for (const Part& part : mine_)
      if (const Bucket& bucket = *part.bucket; bucket.near)
        copy(bucket.values.narrow(bucket.near_shard.count() * bucket.near->rank(), bucket.near_shard.count()).slice(),
             bucket.near_shard.slice());
  }

  static bool gathers_near(const Bucket& bucket, Pass pass) { return bucket.near && pass == Pass::backward; }

  struct Part {
    Bucket* bucket;
    Staged shard = {};  // a copy in memory of a shard in a slow tier
    Axis::Pending gathering = {};
  };
  Buckets& buckets_;
  std::vector<Part> mine_;
  ZeroUnit *before_ = nullptr, *after_ = nullptr;  // the neighbors in the forward pass
};

}  // namespace

std::unique_ptr<Reducer> sharded_reducer(Buckets& buckets, ReductionListener& listener) {
  return std::make_unique<Sharded>(buckets, listener);
}

void wrap_units(std::vector<LayerPointer>& layers, std::span<const std::vector<ParameterPointer>> uses, Buckets& buckets) {
  require(layers.size() <= uses.size(), "{} layers, but parameters of {} units", layers.size(), uses.size());
  ZeroUnit* before = nullptr;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    auto unit = std::make_unique<ZeroUnit>(std::move(layers[i]), uses[i], buckets);
    if (before) unit->follow(*before);
    before = unit.get();
    layers[i] = std::move(unit);
  }
}

}  // namespace chorale
