// Measurements that hold for every run on this machine, kept in a small JSON file beside the tuning table, below
// $XDG_CACHE_HOME/chorale or ~/.cache/chorale. Each host has its own file, so hosts that share a home folder never write to
// the same file.
//
//   machine-vm.json
//     {"schema": "chorale machine", "version": 1, "machine": "AMD EPYC, 2 cores",
//      "peaks": [{"type": "f32", "processor": "2 cores", "library": "oneDNN 2.6", "flops": 4.7e11,
//                 "measured": "2026-11-22T05:40:01Z", "busy": false}]}
//
// The file only saves time, so reading it never fails. A missing or garbled file, or the file of another machine, counts as
// empty. A write replaces the file by a rename and keeps JSON keys it does not know. If two programs write at once, one
// measurement is lost and repeated later.
#pragma once
#include <filesystem>
#include <optional>
#include <string>

namespace chorale {

struct PeakKey {
  std::string type, processor, library;
};

struct MeasuredPeak {
  double flops = 0;      // floating-point operations per second
  std::string measured;  // time of the measurement: 2026-11-22T05:40:01Z
  bool busy = false;     // other programs used the machine during the measurement
};

std::filesystem::path default_machine_file();  // "" if neither XDG_CACHE_HOME nor HOME is set

class MachineFile {
 public:
  explicit MachineFile(std::filesystem::path file = default_machine_file());
  std::optional<MeasuredPeak> peak(const PeakKey& key) const;
  std::string keep(const PeakKey& key, const MeasuredPeak& peak) const;  // returns "" or why it could not be written

 private:
  std::filesystem::path file_;
};

}  // namespace chorale
