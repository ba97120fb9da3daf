// The rate of matrix products that MFU is a share of: that of the cores, or GPUs, which the ranks of a run use together.
//
//   one rank of each machine (or GPU)   looks it up in the machine's file, or measures it while the others sleep
//   all ranks                           get the sum
//
// It is measured once for a machine, type and number of cores, and again when --measure-peak asks for it, when other
// programs ran beside the measurement and are gone, and when a step was faster. So equal runs have equal peaks, and no step
// reaches more than 100 %.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "experiments/run_record.hpp"
#include "experiments/train/device.hpp"
#include "src/base/machine_file.hpp"

namespace chorale::train {

// What a rank measures: `cores` of these CPUs, or nothing if that is 0.
struct PeakSite {
  int cores = 0;
  std::vector<int> cpus;
};
// The first rank of each machine has all that its ranks use there, with so many threads each.
std::vector<PeakSite> sites_of(const std::vector<RankFacts>& ranks, int threads);

// Which of two holds: one that nothing disturbed, or else the faster.
MeasuredPeak better(const std::optional<MeasuredPeak>& known, const MeasuredPeak& found);

class ProductPeak {
 public:
  void declare(Options& options);
  void find(const Session& session, const std::vector<RankFacts>& ranks, const TrainingOptions& options,
            const ComputeDevice& device);  // collective
  // A step reached more than the peak. The first time, ranks on the host measure again together; a step that is still faster
  // becomes the peak.
  void exceeded(double flops);
  bool may_measure_again() const;
  bool measured_again() const { return measured_again_; }

  double flops() const { return sum_.flops; }  // a second
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
