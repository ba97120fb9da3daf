// `--place` selects the model shards and activations that are kept in a file or on the host instead of in memory
// (parallel/step/offload.hpp).
//
//   --place optimizer=file                     ZeRO-Infinity for the optimizer's states only
//   --place parameters=file,optimizer=file,gradients=file --offload-folder /scratch
//   --place activations=file --recompute full
#pragma once
#include <string>
#include <vector>

#include <chorale/training.hpp>
#include "parallel/layout/layout.hpp"
#include "src/base/options.hpp"

namespace chorale::train {

class OffloadPlaces {
 public:
  void declare(Options& options, OffloadOptions& offload);
  // Throws a usage error if the places contradict each other. If `on_accelerator` is set, "cpu" means the host.
  void place(OffloadOptions& offload, bool on_accelerator) const;

 private:
  bool places_any(const std::string& where) const;        // where: "=file", "=host"
  std::int64_t places_of(const std::string& what) const;  // number of different places for `what`
  std::vector<std::string> places_;
};

// Throws a usage error if the folder cannot be used, or has too little space for the ranks of this host. Only the number of
// these ranks is known. The function assumes the ranks that offload the fewest bytes. Returns a warning, or "".
std::string check_offload(const TrainingOptions& options, const Layout& layout, std::int64_t ranks_here,
                          bool on_accelerator);

}  // namespace chorale::train
