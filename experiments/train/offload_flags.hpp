// `--place`: which shards of the model, and which activations, live in a file instead of memory (parallel/step/offload.hpp).
// `--update`: when shards are updated (parallel/step/updates.hpp).
//
//   --place optimizer=file                     ZeRO-Infinity for the optimizer's states only
//   --place parameters=file,optimizer=file,gradients=file --offload-folder /scratch
//   --place activations=file --recompute full
#pragma once
#include <string>
#include <vector>

#include "parallel/step/training.hpp"
#include "src/base/options.hpp"

namespace chorale::train {

class OffloadFlags {
 public:
  void declare(Options& options);
  void compute_on_device(bool on_device) { on_device_ = on_device; }  // before complete()
  void complete(TrainingOptions& options) const;
  // Throws a usage error if the folder cannot be used, or is too small for these ranks of this host, of which it is known
  // only how many there are. Returns a warning, or "".
  std::string check(const TrainingOptions& options, const Layout& layout, std::int64_t ranks_here) const;

 private:
  bool places_any(const std::string& where) const;        // where: "=file", "=host"
  std::int64_t places_of(const std::string& what) const;  // how many different ones
  bool is_away(const std::string& what) const;
  bool to_host() const { return places_any("=host") || (on_device_ && places_any("=cpu")); }
  std::vector<std::string> places_;
  std::string folder_ = ".";
  std::int64_t window_bytes_ = 4 << 20;
  std::string update_ = "after";
  bool on_device_ = false;
};

}  // namespace chorale::train
