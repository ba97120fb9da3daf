// The ranks of a run as a mesh: which backends carry its axes, and where its tensors lie so that peers reach them fastest.
#pragma once
#include <optional>

#include "experiments/command.hpp"
#include "experiments/train/layout_flags.hpp"
#include "src/memory/pool.hpp"

namespace chorale::train {

class Team {
 public:
  Team(const ParallelChoice& choice, const Session& session);  // collective

  Mesh mesh() const;  // collective: a new one, of its own groups
  Memory& memory() { return *pool_; }
  const ByAxis& backends() const { return choice_.backends; }  // as resolved

 private:
  ParallelChoice choice_;
  HostMemory host_;
  std::optional<Worlds> worlds_;  // none for one rank
  std::unique_ptr<Pool> pool_;
};

}  // namespace chorale::train
