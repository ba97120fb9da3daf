#include "experiments/train/team.hpp"

#include "collectives/backends/backends.hpp"

namespace chorale::train {
namespace {

// The first that works on every rank: mapped memory where all ranks share a host.
std::string best_backend(const mpi::Runtime& runtime) {
  for (const char* name : {"shm", "ucx"})
    for (const Backend& backend : all_backends())
      if (backend.name == std::string(name) &&
          mpi::ranks_where(runtime.world(), !(backend.open && probe(backend).works)).empty())
        return name;
  return "mpi";
}

}  // namespace

Team::Team(const ParallelChoice& choice, const Session& session) : choice_(choice) {
  for (auto& [axis, backend] : choice_.backends)
    if (backend == "auto") backend = best_backend(*session.runtime);
  if (choice_.layout.ranks() > 1) worlds_.emplace(choice_.backends, *session.runtime, session.clock);
  pool_ = std::make_unique<Pool>(worlds_ ? worlds_->memory() : host_);
}

Mesh Team::mesh() const { return worlds_ ? Mesh(choice_.layout, *worlds_, choice_.algorithms) : Mesh(); }

}  // namespace chorale::train
