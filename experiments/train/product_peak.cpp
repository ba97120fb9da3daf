#include "experiments/train/product_peak.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "experiments/common/gather_json.hpp"
#include "src/base/error.hpp"
#include "src/base/host.hpp"
#include "src/base/machine_load.hpp"
#include "src/base/text.hpp"
#include "src/math/peak.hpp"
#include "src/math/products.hpp"

namespace chorale::train {
namespace {

// Counts equal names: "2 cores" for one machine, "4 × 2 cores" for four machines with two cores each.
std::string together(const std::vector<std::string>& processors) {
  const std::set<std::string> kinds(processors.begin(), processors.end());
  std::vector<std::string> words;
  for (const std::string& kind : kinds) {
    const auto count = std::count(processors.begin(), processors.end(), kind);
    words.push_back(count > 1 ? fmt::format("{} × {}", count, kind) : kind);
  }
  return join(words, " and ");
}

}  // namespace

std::vector<PeakSite> sites_of(const std::vector<RankFacts>& ranks, int threads) {
  std::vector<PeakSite> sites;
  std::set<std::string> seen;
  for (const RankFacts& rank : ranks) {
    PeakSite& site = sites.emplace_back();
    if (!seen.insert(rank.kernel).second) continue;
    std::set<int> cpus;
    for (const RankFacts& other : ranks)
      if (other.kernel == rank.kernel) {
        cpus.insert(other.cpus.begin(), other.cpus.end());
        site.cores += threads;
      }
    site.cores = std::max(1, std::min(site.cores, static_cast<int>(cpus.size())));
    site.cpus.assign(cpus.begin(), cpus.end());
  }
  return sites;
}

PeakKey host_peak_key(DType dtype, int cores) {
  return {name_of(dtype), fmt::format("{} core{}", cores, cores > 1 ? "s" : ""), product_library()};
}

MeasuredPeak better(const std::optional<MeasuredPeak>& known, const MeasuredPeak& found) {
  if (!known) return found;
  if (known->busy != found.busy) return known->busy ? found : *known;
  return known->flops > found.flops ? *known : found;
}

void ProductPeak::declare(Options& options) {
  options.add("measure-peak", asked_,
              "measure the peak on which MFU is based, instead of reading it from the machine's file");
}

void ProductPeak::find(const Session& session, const std::vector<RankFacts>& ranks, const TrainingOptions& options,
                       const ComputeDevice& device) {
  runtime_ = session.runtime;
  clock_ = &session.clock;
  device_ = &device;
  dtype_ = options.compute;
  nlohmann::json sites = nlohmann::json::array();
  for (const PeakSite& site : sites_of(ranks, options.kernels.threads))
    sites.push_back({{"cores", site.cores}, {"cpus", site.cpus}});
  sites = nlohmann::json::parse(mpi::broadcast(runtime_->world(), sites.dump()));
  const nlohmann::json& mine = sites[static_cast<std::size_t>(runtime_->rank())];
  site_ = {mine["cores"], mine["cpus"]};
  key_ = host_peak_key(dtype_, site_.cores);
  if (device.memory()) {
    site_.cores = device.first_of_its_gpu() ? 1 : 0;
    key_.processor = device.name();
    key_.library = "CUDA";
  }
  add_up(asked_);
}

void ProductPeak::exceeded(double flops) {
  if (may_measure_again()) add_up(true);
  measured_again_ = true;
  is_a_step_ |= flops > sum_.flops;
  sum_.flops = std::max(sum_.flops, flops);
}

// A GPU is not measured again, because the model can leave too little memory for the matrices of a measurement.
bool ProductPeak::may_measure_again() const { return !measured_again_ && !device_->memory(); }

std::string ProductPeak::text() const {
  const std::string what = fmt::format("{:.0f} GFLOP/s in {} by {}", sum_.flops / 1e9, name_of(dtype_), processors_);
  if (is_a_step_) return fmt::format("{}, the rate of a step that was faster than any measurement", what);
  return fmt::format("{}, measured {}{}", what, sum_.measured,
                     sum_.busy ? " beside other programs, so it may be too low" : "");
}

// Finds the peak of each machine or GPU, and sums these peaks. With `again`, peaks in the machine's file are ignored.
void ProductPeak::add_up(bool again) {
  mpi::sleep_until_all(runtime_->world(), *clock_);
  nlohmann::json mine;
  if (site_.cores > 0) {
    const MeasuredPeak peak = of_site(again);
    mine = {{"flops", peak.flops},
            {"measured", peak.measured},
            {"busy", peak.busy},
            {"processor", key_.processor},
            {"file_trouble", file_trouble_}};
  }
  mpi::sleep_until_all(runtime_->world(), *clock_);
  const auto all =
      nlohmann::json::parse(mpi::broadcast(runtime_->world(), nlohmann::json(gather_json(*runtime_, mine)).dump()));
  sum_ = {};
  std::vector<std::string> processors;
  for (const nlohmann::json& peak : all) {
    if (peak.is_null()) continue;
    sum_.flops += peak["flops"].get<double>();
    sum_.measured = std::max<std::string>(sum_.measured, peak["measured"]);
    sum_.busy |= peak["busy"].get<bool>();
    if (file_trouble_.empty()) file_trouble_ = peak["file_trouble"];
    processors.push_back(peak["processor"]);
  }
  processors_ = together(processors);
}

MeasuredPeak ProductPeak::of_site(bool again) {
  const MachineFile file;
  const auto known = again ? std::nullopt : file.peak(key_);
  if (known && !(known->busy && !work_now(*clock_).busy())) return *known;
  MeasuredPeak peak = better(known, measure());
  for (int more = 2; more > 0 && peak.busy; --more) peak = better(peak, measure());
  try {
    file.keep(key_, peak);  // if this fails, the next run measures again
  } catch (const Error& error) {
    file_trouble_ = on_one_line(error.what());
  }
  return peak;
}

MeasuredPeak ProductPeak::measure() {
  const MachineReading before = read_machine(*clock_);
  MeasuredPeak peak{.measured = iso_time(clock_->wall_seconds())};
  peak.flops = device_->memory() ? product_peak(dtype_, *device_->memory(), *device_->plugin())
                                 : product_peak(dtype_, site_.cores, site_.cpus);
  peak.busy = work_between(before, read_machine(*clock_), online_cores()).busy();
  return peak;
}

}  // namespace chorale::train
