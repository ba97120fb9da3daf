#include "experiments/train/team.hpp"

namespace chorale::train {

std::string best_backend(const std::function<bool(const Backend&)>& works) {
  for (const char* name : {"shm", "ucx"})
    if (works(backend_named(name))) return name;
  return "mpi";
}

ByAxis resolved(ByAxis backends, const mpi::Runtime& runtime) {
  const auto works_everywhere = [&](const Backend& backend) {
    return mpi::ranks_where(runtime.world(), !(backend.open && probe(backend).works)).empty();
  };
  for (auto& [axis, backend] : backends)
    if (backend == "auto") backend = best_backend(works_everywhere);
  return backends;
}

Team::Team(const ParallelChoice& choice, ComputeDevice& device, const Session& session) : choice_(choice) {
  device.open(*session.runtime);
  choice_.backends = resolved(choice_.backends, *session.runtime);
  if (choice_.layout.ranks() > 1) worlds_.emplace(choice_.backends, *session.runtime, session.clock);
  if (worlds_ && device.memory()) worlds_->use_device(device.memory());
  pool_ = std::make_unique<Pool>(device.memory() ? *device.memory() : worlds_ ? worlds_->memory() : host_);
}

Mesh Team::mesh() const { return worlds_ ? Mesh(choice_.layout, *worlds_, choice_.algorithms) : Mesh(choice_.layout); }

PlanRequest Team::plans(const TrainingOptions& options) const {
  PlanRequest request{options, choice_.layout, choice_.backends, choice_.algorithms};
  if (worlds_) request.selector = worlds_->selector();
  return request;
}

}  // namespace chorale::train
