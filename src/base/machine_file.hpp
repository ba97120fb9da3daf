// The machine file contains performance data of a machine, which are measured only once. `train` stores the peak rates of
// matrix products in the file. `tune --calibrate` stores the parameters of the communication cost model ("prices"). The file
// is TOML, so that a person can read it, or write one for a machine that does not exist yet. docs/machine_file.md describes
// every key.
//
//   schema = "chorale machine"                       [[level]]              # the ranks of a host, or hosts on a network
//   machine = "AMD EPYC, 2 cores"                    backend = "shm"
//   [[peak]]            # matrix products            ranks = 2
//   type = "f32"                                     latency = 1.7e-7       # s
//   flops = 4.7e11      # 1/s                        cross = [2.4e10, …]    # B/s
//
// The default file is in the same folder as the tuning table, below $XDG_CACHE_HOME/chorale or ~/.cache/chorale. Each host
// has its own file, so hosts that share a home directory never write to the same file. A write creates a new file and
// renames it to the old name. If two programs write at the same time, one measurement is lost and repeated later.
#pragma once
#include <array>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/base/system.hpp"

namespace chorale {

struct PeakKey {
  std::string type, processor, library;
  bool operator==(const PeakKey&) const = default;
};

struct MeasuredPeak {
  double flops = 0;      // floating-point operations per second
  std::string measured;  // time of the measurement: 2026-11-22T05:40:01Z
  bool busy = false;     // other programs used the machine during the measurement
};

struct SumRate {  // the speed at which one core adds vectors of this type
  std::string type;
  double rate = 0, spread = 0;  // `rate` is in bytes of one addend per second; `spread` is half the interquartile range,
                                // relative to the rate
  std::string measured;
};

// The cost-model parameters (prices) of one backend between ranks of one host (span "host") or between hosts (span
// "network").
struct Level {
  std::string backend, span = "host";
  int ranks = 2, hosts = 1;   // numbers of ranks and hosts in the run that measured the prices
  bool shared_cores = false;  // whether the hosts are emulated and share the cores of one machine
  std::string measured;
  bool busy = false;
  double barrier = -1;             // time of a barrier during that run, in seconds, or −1 if it is unknown
  std::int64_t staged_bytes = -1;  // longest message of ordinary memory that is best staged, or −1 if it is unknown
  int rows = 0;                    // number of measurements (table rows) to which the prices were fitted
  double error = 0, error_95 = 0;  // median and 95th percentile of |ln(predicted/measured)| over these measurements
  std::map<std::string, std::vector<double>> prices;  // keyed by the names of price_keys()
  std::map<std::string, std::vector<double>> spread;  // relative standard errors, for some of the keys
};

// The rates at which one core performs each kind of work in a training step, while all ranks of the run compute the same
// step.
struct ComputeRates {
  std::string type;      // type of the activations
  int ranks = 1;         // number of ranks in the run that measured the rates
  double product = 0;    // rate of matrix products, in flops per second
  double attention = 0;  // rate of attention (its two matrix products and the softmax between them), in flops per second
  double elements = 0;   // rate at which all other kernels read and write memory, in bytes per second
  double update = 0;     // rate at which the optimizer reads and writes memory, in bytes per second
  double error = 0;      // largest |ln(predicted/measured)| over the steps to which the rates were fitted
  std::string measured;
  bool busy = false;
};

struct Machine {
  std::string signature;  // machine_signature(), or any name if the file describes a different machine
  int cores = 0;
  std::vector<std::pair<PeakKey, MeasuredPeak>> peaks;
  std::vector<SumRate> sums;
  std::vector<Level> levels;
  std::vector<ComputeRates> computes;
  std::optional<System> system;  // the accelerators, if the file describes any
  std::string file = "";         // the name of the file, or "" if there is none
};

struct PriceKey {
  const char *name, *unit;
  std::size_t count;  // number of values: 1, or one per footprint
  const char* about;
};
std::span<const PriceKey> price_keys();
// Footprints in bytes. A price that depends on the number of bytes that a core accesses per call has one value for each
// footprint.
inline constexpr std::array<double, 5> footprints{16 << 10, 256 << 10, 2 << 20, 16 << 20, 128 << 20};

std::filesystem::path default_machine_file();  // "" if neither XDG_CACHE_HOME nor HOME is set
// Throws a usage error if the text is not a machine file. The error names the line and the key. `file` is the file's name in
// errors.
Machine parse_machine(const std::string& text, const std::string& file);
Machine read_machine(const std::filesystem::path& file);
// Reads the machine file `named`, the value of --machine, and treats it as this machine's file, even if it describes a
// different machine. If `named` is empty, reads the default file, if that file exists.
Machine machine_for(const std::string& named);
std::string to_toml(const Machine& machine);

// Says where a predicted time comes from: "machine-n0.toml, calibrated 2026-11-22 with 2 ranks, median error 8 %", or
// "selene.toml, not calibrated: its values were stated, not measured here".
std::string origin_of(const Machine& machine, const Level& level);
std::string origin_of(const Machine& machine, const ComputeRates& rates);
std::string origin_of(const System& system);

// Reads the file of this machine. Returns an empty Machine if the file is missing. Throws a usage error if the file is
// damaged or belongs to a different machine.
Machine own_machine(const std::filesystem::path& file);
// Applies `change` to own_machine(file) and writes the result. Throws if own_machine() throws. Returns "" on success, and
// otherwise the reason why the file could not be written.
std::string change_machine(const std::filesystem::path& file, const std::function<void(Machine&)>& change);

// The peak rates in this machine's file. Reading them never throws, because a rate that cannot be read is only measured
// again. Like change_machine(), keep() returns "" or the reason why the file could not be written.
class MachineFile {
 public:
  explicit MachineFile(std::filesystem::path file = default_machine_file());
  std::optional<MeasuredPeak> peak(const PeakKey& key) const;
  std::string keep(const PeakKey& key, const MeasuredPeak& peak) const;

 private:
  std::filesystem::path file_;
};

}  // namespace chorale
