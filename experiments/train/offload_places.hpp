// `--place`: which shards of the model, and which activations, live in a file or on the host instead of memory
// (parallel/step/offload.hpp).
//
//   --place optimizer=file                     ZeRO-Infinity for the optimizer's states only
//   --place parameters=file,optimizer=file,gradients=file --offload-folder /scratch
//   --place activations=file --recompute full
#pragma once
#include <string>
#include <vector>

#include "parallel/step/training_options.hpp"
#include "src/base/options.hpp"

namespace chorale::train {

class OffloadPlaces {
 public:
  void declare(Options& options, OffloadOptions& offload);
  // Throws a usage error if the places contradict each other. `on_accelerator`: there, cpu means host.
  void place(OffloadOptions& offload, bool on_accelerator) const;

 private:
  bool places_any(const std::string& where) const;        // where: "=file", "=host"
  std::int64_t places_of(const std::string& what) const;  // how many different ones
  std::vector<std::string> places_;
};

// Throws a usage error if the folder cannot be used, or is too small for these ranks of this host, of which it is known
// only how many there are. Returns a warning, or "".
std::string check_offload(const TrainingOptions& options, const Layout& layout, std::int64_t ranks_here,
                          bool on_accelerator);

}  // namespace chorale::train
