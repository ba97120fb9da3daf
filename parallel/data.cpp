// Data parallelism: every rank has the model and a part of the batch, and gradients are added over all ranks.
//
//   naive      after the last backward pass, tensor by tensor                          the lesson: all of it is waited for
//   bucketed   backward ─ block 5 ─┬─ block 4 ─┬─ block 3 ─ …                           each bucket leaves when its last gradient is ready,
//                                  └ bucket 0 ─┴ bucket 1 ─ …                           while earlier layers still compute
//
// No thread does that: between any two layers this rank takes the steps of its calls that can be taken (Context::after_layer).
//
// With ring 2Ψ(N−1)/N elements a step. ZeRO-1 (Rajbhandari et al. 2020) is the second half of it put off: buckets are reduce-scattered, each
// rank updates its shard alone (1/N of the optimizer's state), and the values are gathered: as many bytes.
#include "parallel/reducer.hpp"

namespace chorale {
namespace {

class Naive final : public Reducer {
 public:
  Naive(Buckets& buckets, const Mesh& mesh) : buckets_(buckets), mesh_(mesh) {}
  void begin(std::int64_t) override {}
  void ready(const Parameter&) override {}
  void finish() override {
    for (Bucket& bucket : buckets_.all())
      for (const Bucket::Place& place : bucket.places) {
        const Parameter& p = *place.parameter;
        if (p.of_stream && mesh_.layout().sequence) mesh_.tensor().all_reduce(p.gradient);
        mesh_.data().all_reduce(p.gradient);
      }
    add_tied(buckets_, mesh_);
  }
  void publish() override {}

 private:
  Buckets& buckets_;
  const Mesh& mesh_;
};

class Bucketed final : public Reducer {
 public:
  Bucketed(Buckets& buckets, const Mesh& mesh) : buckets_(buckets), mesh_(mesh) {}

  void begin(std::int64_t micro_batches) override {
    for (Bucket& bucket : buckets_.all()) bucket.waits_for = micro_batches * static_cast<std::int64_t>(bucket.places.size());
  }

  void ready(const Parameter& parameter) override {
    Bucket& bucket = buckets_.of(parameter);
    if (--bucket.waits_for > 0) return;
    if (mesh_.layout().sequence) mesh_.tensor().all_reduce(bucket.gradients.narrow(0, bucket.stream));
    Axis& axis = mesh_.data();
    under_way_.push_back(scatters() ? axis.start_reduce_scatter(bucket.gradients, bucket.gradient_shard)
                                    : axis.start_all_reduce(bucket.gradients));
  }

  void finish() override {
    for (const Bucket& bucket : buckets_.all())
      require(bucket.waits_for == 0, "a bucket still waits for {} gradients", bucket.waits_for);
    for (Axis::Pending& pending : under_way_) pending.wait();
    under_way_.clear();
    add_tied(buckets_, mesh_);
  }

  void publish() override {
    if (scatters()) gather_values(buckets_, mesh_);
  }

 private:
  bool scatters() const { return mesh_.layout().zero == 1; }

  Buckets& buckets_;
  const Mesh& mesh_;
  std::vector<Axis::Pending> under_way_;
};

}  // namespace

void add_tied(Buckets& buckets, const Mesh& mesh) {
  for (const Bucket& bucket : buckets.all())
    if (bucket.tied) mesh.ends().all_reduce(mesh.layout().zero == 0 ? bucket.gradients : bucket.gradient_shard);
}

void gather_values(Buckets& buckets, const Mesh& mesh) {
  std::vector<Axis::Pending> under_way;
  for (const Bucket& bucket : buckets.all())
    under_way.push_back(mesh.data().start_all_gather(bucket.value_shard, bucket.values));
  for (Axis::Pending& pending : under_way) pending.wait();
}

std::unique_ptr<Reducer> naive_reducer(Buckets& buckets, const Mesh& mesh) { return std::make_unique<Naive>(buckets, mesh); }

std::unique_ptr<Reducer> bucketed_reducer(Buckets& buckets, const Mesh& mesh) {
  return std::make_unique<Bucketed>(buckets, mesh);
}

}  // namespace chorale
