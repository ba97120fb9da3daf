#include "experiments/plan/space.hpp"

#include <algorithm>
#include <numeric>

#include "parallel/pipeline/schedule.hpp"

namespace chorale::plan {
namespace {

std::vector<std::int64_t> divisors_up_to(std::int64_t most, std::int64_t of) {
  std::vector<std::int64_t> all = divisors(of);
  std::erase_if(all, [&](std::int64_t divisor) { return divisor > most; });
  return all;
}
std::vector<std::int64_t> powers(std::int64_t most) {
  std::vector<std::int64_t> all;
  for (std::int64_t i = 1; i <= most; i *= 2) all.push_back(i);
  return all;
}

// Lists all divisions of the ranks among the axes. Each division is combined with the values of sp, ZeRO, chunks, experts
// and schedule that fit it. ZeRO shards among all replicas, or among the replicas of a host.
class Space {
 public:
  explicit Space(const SearchRequest& request) : request_(request), options_(request.step.plan.options) {}

  std::vector<Found> all() {
    const ModelShape& shape = options_.shape;
    for (const std::int64_t t :
         divisors_up_to(request_.step.system.host.accelerators, std::gcd(shape.heads, request_.ranks)))
      for (const std::int64_t p : divisors_up_to(request_.ranks / t, shape.layers))
        for (const std::int64_t c : powers(shape.sequence >= 8192 ? 8 : 1))
          if (request_.ranks % (t * p * c) == 0) divide(t, p, c, request_.ranks / (t * p * c));
    return std::move(all_);
  }

 private:
  void divide(std::int64_t t, std::int64_t p, std::int64_t c, std::int64_t d) {
    if (options_.batch.global % d != 0) return;
    Layout layout;
    layout.size_dividing(Divides::batch) = d;
    layout.size_dividing(Divides::width) = t;
    layout.size_dividing(Divides::layers) = p;
    layout.size_dividing(Divides::tokens) = c;
    for (const bool sequence : {false, true})
      for (const int zero : {0, 1, 2, 3})
        for (const std::int64_t chunks : powers(p > 1 ? options_.shape.layers / p : 1)) {
          layout.sequence = sequence;
          layout.zero = zero;
          layout.chunks = chunks;
          const bool useless = (sequence && t == 1) || (zero > 0 && d * c == 1);
          if (!useless && options_.shape.layers % (p * chunks) == 0) shards(layout);
        }
  }
  void shards(const Layout& layout) {
    experts(layout);
    const std::int64_t host = request_.step.system.host.accelerators / layout.shards(), all = layout.zero_ranks();
    if (layout.zero > 0 && host > 1 && host < all && all % host == 0 && host % layout.context_ranks() == 0)
      experts(with_zero_ranks(layout, host));
  }
  void experts(Layout layout) {
    const std::int64_t most = options_.shape.experts.count > 0 ? layout.zero_ranks() : 1;
    for (const std::int64_t e : divisors_up_to(most, std::max<std::int64_t>(1, options_.shape.experts.count))) {
      layout.size_dividing(Divides::experts) = e;
      schedules(layout);
    }
  }
  void schedules(Layout layout) {
    for (const PipelineAlgorithm& row : all_pipeline_schedules()) {
      if (layout.stages() == 1 && &row != &usual_schedule()) continue;
      layout.schedule = &row;
      if (!request_.wanted(layout)) continue;
      const std::vector<Found> ways = ways_of(layout, request_);
      all_.insert(all_.end(), ways.begin(), ways.end());
    }
  }

  const SearchRequest& request_;
  const TrainingOptions& options_;
  std::vector<Found> all_;
};

}  // namespace

std::vector<Found> ways_of(const Layout& layout, const SearchRequest& request) {
  std::vector<Found> ways;
  const std::int64_t batch = request.step.plan.options.batch.global, asked = request.micro_batch;
  const std::int64_t most = std::min<std::int64_t>(16, batch / layout.replicas());
  for (const std::int64_t micro : asked > 0 ? std::vector{asked} : powers(most)) {
    if (batch % (layout.replicas() * micro) != 0) continue;
    const std::int64_t micro_batches = batch / (layout.replicas() * micro);
    if (!fits(*layout.schedule, pipeline_of(layout, micro_batches))) continue;
    for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full})
      ways.push_back({layout, micro, recompute});
  }
  return ways;
}

std::vector<Found> all_ways(const SearchRequest& request) { return Space(request).all(); }

}  // namespace chorale::plan
