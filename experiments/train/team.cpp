#include "experiments/train/team.hpp"

#include <malloc.h>

#include "parallel/context/context.hpp"
#include "parallel/mesh/placement.hpp"
#include "parallel/plan/order.hpp"
#include "src/base/host.hpp"

namespace chorale::train {

Placed placed(ParallelChoice choice, const TrainingOptions& options, const Topology& topology) {
  if (!choice.layout.order.empty() || choice.layout.ranks() == 1 || topology.hosts() <= 1) return {std::move(choice), ""};
  TrainingOptions unplaced = options;
  unplaced.context = before_hosts_are_known(options.context, options.shape, choice.layout);
  const WhyNot why_not = [&](const Layout& layout) { return why_not_on(topology, layout, choice.backends, options); };
  OrderChoice order = cheapest_order(choice.layout, why_not, sent_in_a_step({unplaced, choice.layout}), topology);
  choice.layout.order = std::move(order.order);
  return {std::move(choice), std::move(order.why)};
}

// A training rank finishes a layer, or a block of a file, within this time. A rank that takes longer is considered hung.
constexpr double timeout_seconds = 60;

TrainingTeam::TrainingTeam(const ParallelChoice& choice, ComputeDevice& device, const Session& session) : choice_(choice) {
  device.open(*session.runtime);
  choice_.backends = resolved(choice_.backends, device.memory() != nullptr, choice_.layout, *session.runtime);
  if (choice_.layout.ranks() > 1) {
    worlds_.emplace(choice_.backends, *session.runtime, session.clock, timeout_seconds);
    require_reach(choice_.layout, worlds_->backends(), worlds_->topology());
  }
  if (worlds_ && device.memory()) worlds_->use_device(device.memory());
  pool_ = std::make_unique<Pool>(worlds_ ? worlds_->memory() : device.memory() ? *device.memory() : host_);
  about_device_ = device.about();
  if (worlds_ && !worlds_->about_memory().empty()) about_device_ += "; memory " + worlds_->about_memory();
}

Mesh TrainingTeam::mesh() const {
  return worlds_ ? Mesh(choice_.layout, *worlds_, choice_.algorithms) : Mesh(choice_.layout);
}

std::int64_t TrainingTeam::spare_memory_of(const TrainingOptions& options, int rank) {
  if (options.offload.any()) {
    mallopt(M_MMAP_THRESHOLD, 128 << 10);  // the default, set so that malloc does not raise it when it frees large blocks
    pool_->hold_at_most(plan_rank(plans(options), rank).peak_bytes);
  }
  return resident_memory().bytes;
}

PlanRequest TrainingTeam::plans(const TrainingOptions& options) const {
  PlanRequest request{options, choice_.layout, choice_.backends, choice_.algorithms};
  if (worlds_) {
    request.selector = worlds_->selector();
    request.hosts = worlds_->topology().host_of;
  }
  return request;
}

}  // namespace chorale::train
