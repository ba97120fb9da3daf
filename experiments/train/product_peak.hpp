// The peak rate of matrix products, which MFU is relative to: the sum over all cores or GPUs that the run uses.
//
//   one rank of each machine (or GPU)   looks it up in the machine's file, or measures it while the others sleep
//   all ranks                           get the sum
//
// It is measured once per machine, type and number of cores, so equal runs have equal peaks. It is measured again with
// --measure-peak, if other programs disturbed the measurement and have ended, or if a step was faster. So no step exceeds
// 100 %.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "experiments/run_record.hpp"
#include "experiments/train/device.hpp"
#include "src/base/machine_file.hpp"

namespace chorale::train {

// The cores that a rank measures: `cores` of these CPUs, or none if that is 0.
struct PeakSite {
  int cores = 0;
  std::vector<int> cpus;
};
// The first rank of each machine measures all cores that the machine's ranks use, with `threads` threads each.
std::vector<PeakSite> sites_of(const std::vector<RankFacts>& ranks, int threads);

// The better measurement: an undisturbed one, else the faster one.
MeasuredPeak better(const std::optional<MeasuredPeak>& known, const MeasuredPeak& found);

class ProductPeak {
 public:
  void declare(Options& options);
  void find(const Session& session, const std::vector<RankFacts>& ranks, const TrainingOptions& options,
            const ComputeDevice& device);  // collective
  // Called when a step exceeded the peak. The first time, ranks on the host measure again together. If the step is still
  // faster, its rate becomes the peak.
  void exceeded(double flops);
  bool may_measure_again() const;
  bool measured_again() const { return measured_again_; }

  double flops() const { return sum_.flops; }  // per second
  std::string text() const;                    // "471 GFLOP/s in f32 by 2 cores, measured 2026-11-22T05:40:01Z"

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
  std::string processors_;
};

}  // namespace chorale::train
