#include "experiments/train/team.hpp"

namespace chorale::train {

ByAxis resolved(ByAxis backends, bool on_device, const mpi::Runtime& runtime) {
  for (auto& [axis, backend] : backends)
    if (backend == "auto") backend = best_backend(runtime, on_device);
  return backends;
}

Team::Team(const ParallelChoice& choice, ComputeDevice& device, const Session& session) : choice_(choice) {
  device.open(*session.runtime);
  choice_.backends = resolved(choice_.backends, device.memory() != nullptr, *session.runtime);
  if (choice_.layout.ranks() > 1) worlds_.emplace(choice_.backends, *session.runtime, session.clock);
  if (worlds_ && device.memory()) worlds_->use_device(device.memory());
  pool_ = std::make_unique<Pool>(worlds_ ? worlds_->memory() : device.memory() ? *device.memory() : host_);
  about_device_ = device.about();
  if (worlds_ && !worlds_->about_memory().empty()) about_device_ += "; memory " + worlds_->about_memory();
}

Mesh Team::mesh() const { return worlds_ ? Mesh(choice_.layout, *worlds_, choice_.algorithms) : Mesh(choice_.layout); }

PlanRequest Team::plans(const TrainingOptions& options) const {
  PlanRequest request{options, choice_.layout, choice_.backends, choice_.algorithms};
  if (worlds_) request.selector = worlds_->selector();
  return request;
}

}  // namespace chorale::train
