// What was measured of this machine once and holds for every run on it: a small JSON file, below $XDG_CACHE_HOME/chorale or ~/.cache/chorale,
// where the tuning table is. Each host has one of its own, so that hosts which share a home never write to the same file.
//
//   machine-vm.json
//     {"schema": "chorale machine", "version": 1, "machine": "AMD EPYC, 2 cores",
//      "peaks": [{"type": "f32", "processor": "2 cores", "library": "oneDNN 2.6", "flops": 4.7e11,
//                 "measured": "2026-11-22T05:40:01Z", "busy": false}]}
//
// It saves time and decides nothing else, so it never fails: a file that is missing, garbled or of another machine counts as empty. A write
// replaces it whole by a rename and keeps the sections that it does not know. Of two writes at once one is lost, and is measured again.
#pragma once
#include <filesystem>
#include <optional>
#include <string>

namespace chorale {

struct PeakKey {
  std::string type, processor, library;
};

struct MeasuredPeak {
  double flops = 0;      // floating-point operations a second
  std::string measured;  // when: 2026-11-22T05:40:01Z
  bool busy = false;     // other programs ran meanwhile
};

std::filesystem::path default_machine_file();  // "" where there is no place for one

class MachineFile {
 public:
  explicit MachineFile(std::filesystem::path file = default_machine_file());
  std::optional<MeasuredPeak> peak(const PeakKey& key) const;
  std::string keep(const PeakKey& key, const MeasuredPeak& peak) const;  // returns why it could not be kept, or ""

 private:
  std::filesystem::path file_;
};

}  // namespace chorale
