// The peak rate of matrix products in flops per second, summed over all cores or GPUs that the run uses. MFU (model flops
// utilization) is a step's rate divided by this peak.
//
//   one rank of each machine (or GPU)   reads the peak from the machine's file, or measures it while the other ranks sleep
//   all ranks                           get the sum over machines or GPUs
//
// A peak is measured once per machine, type and number of cores, so equal runs have equal peaks. The peak is measured again
//   - with --measure-peak,
//   - if other programs disturbed the stored measurement and have ended since,
//   - on the host, if a step was faster than the peak.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "experiments/common/run_record.hpp"
#include "experiments/train/device.hpp"
#include "src/base/machine_file.hpp"

namespace chorale::train {

// A rank measures the peak on `cores` of the CPUs in `cpus`. A rank with 0 cores measures nothing.
struct PeakSite {
  int cores = 0;
  std::vector<int> cpus;
};
// The site of each rank. The first rank of each machine measures all cores that the machine's ranks use: `threads` cores for
// each rank. The other ranks measure nothing.
std::vector<PeakSite> sites_of(const std::vector<RankFacts>& ranks, int threads);

// The key under which the machine file stores the peak of matrix products for this type and number of cores.
PeakKey host_peak_key(DType dtype, int cores);

// Returns the more reliable measurement: the undisturbed one; if both or neither were disturbed, the faster one.
MeasuredPeak better(const std::optional<MeasuredPeak>& known, const MeasuredPeak& found);

class ProductPeak {
 public:
  void declare(Options& options);
  void find(const Session& session, const std::vector<RankFacts>& ranks, const TrainingOptions& options,
            const ComputeDevice& device);  // collective
  // Called on all ranks when a step reached `flops` per second, which is more than the peak. The first time, ranks on the
  // host measure the peak again, together. If the step is still faster than the new peak, or ran on GPUs, its rate becomes
  // the peak.
  void exceeded(double flops);
  bool may_measure_again() const;
  bool measured_again() const { return measured_again_; }

  double flops() const { return sum_.flops; }  // the peak of the whole run, in flops per second
  std::string text() const;                    // "471 GFLOP/s in f32 by 2 cores, measured 2026-11-22T05:40:01Z"
  // States why a new peak could not be stored in the machine file: the file is damaged, or it belongs to a different
  // machine. "" if the peak could be stored, or if there is no new peak.
  const std::string& file_trouble() const { return file_trouble_; }

 private:
  MeasuredPeak of_site(bool again);
  MeasuredPeak measure();
  void add_up(bool again);  // collective

  bool asked_ = false, measured_again_ = false, is_a_step_ = false;
  const mpi::Runtime* runtime_ = nullptr;
  Clock* clock_ = nullptr;
  const ComputeDevice* device_ = nullptr;
  DType dtype_ = DType::f32;
  PeakSite site_;
  PeakKey key_;
  MeasuredPeak sum_;
  std::string processors_, file_trouble_;
};

}  // namespace chorale::train
