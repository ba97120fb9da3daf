// The options that `bench` and `tune` share. These options define the rows to measure, the backends, and how to measure.
#pragma once
#include <string>
#include <vector>

#include "collectives/choice/selection.hpp"
#include "experiments/bench/sweep.hpp"
#include "experiments/common/hosts_option.hpp"
#include "src/base/options.hpp"

namespace chorale::bench {

class Asked {
 public:
  void take_simulated() { takes_simulated_ = true; }  // lets --backend name "simulated:NAME"; call it before declare
  void declare(Options& options);
  // Called before MPI starts. A file that the user named must exist, unless the command is about to write it.
  enum class Writes { nothing, tuning, machine };
  void check(Writes writes = Writes::nothing);
  // Collective. Replaces backend "auto" by the preferred backend that works on these ranks and connects their hosts.
  Sweep sweep(const mpi::Runtime& runtime, bool on_device = false) const;

  bool cold() const { return cache_ == "cold"; }
  bool heap() const { return memory_ == "heap"; }
  std::string tuning_file() const;  // path of the tuning table; "" if there is no folder for the file
  TuningTable tuning() const;       // read from tuning_file(), if it exists
  std::string machine_file() const;
  Machine machine() const;  // a file that the user named is used as the file of this machine

  WantedCases wanted;
  std::vector<std::string> backends{"auto"};

 private:
  std::int64_t repetitions_ = 0, warm_up_ = 5, threads_ = 2, order_ = 1;
  std::string cache_ = "hot", memory_ = "symmetric", tuning_, machine_;
  HostsOption hosts_;
  bool takes_simulated_ = false;
};

}  // namespace chorale::bench
