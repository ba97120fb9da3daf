#include "parallel/step/offload.hpp"

#include <fmt/format.h>

#include <utility>

#include "src/base/error.hpp"
#include "src/base/options.hpp"
#include "src/base/text.hpp"
#include "src/tier/file_tier.hpp"

namespace chorale {

void OffloadOptions::declare(Options& o, const std::function<std::string()>& nothing_in_file) {
  o.add("offload-folder", folder, "folder of this file, on a local disk; the file has no name, so none is left behind")
      .words("DIR")
      .only_where("offload", nothing_in_file);
  o.add_bytes("offload-window", window_bytes,
              "bytes of each tensor that an update of offloaded states has in memory at once")
      .range(4096, 1e12)
      .only_where("offload", nothing_in_file);
}

std::int64_t OffloadOptions::window_elements() const {
  require(window_bytes >= 4096, "a window of {} bytes is less than a page of 4096", window_bytes);
  return window_bytes / 4096 * 1024;
}

MaybeMisfit misfit_of_offload(const OffloadOptions& options, const Layout& layout, bool on_device) {
  if (on_device && options.any() && !options.to_host)
    return Misfit{"a GPU offloads to the host, not to a file", "--place …=file with --device cuda",
                  "--place …=host, or --device cpu"};
  const auto needs = [&](const char* what, int zero, const char* why) {
    return Misfit{fmt::format("{} can be offloaded only if ranks keep nothing but their shards of them", what),
                  fmt::format("{} has ZeRO stage {}; {}", to_string(layout), layout.zero, why),
                  fmt::format("--zero {}", zero)};
  };
  if (options.parameters && layout.zero < 3)
    return needs("parameters", 3, "below 3, every rank computes with whole parameters");
  if (options.gradients && layout.zero < 2) return needs("gradients", 2, "below 2, gradients are whole until the update");
  return {};
}

std::vector<OffloadOptions> more_in_tier(const OffloadOptions& now, const Layout& layout) {
  std::vector<OffloadOptions> all;
  OffloadOptions more = now;
  const auto add = [&](bool OffloadOptions::*what, int zero) {
    if (layout.zero < zero || std::exchange(more.*what, true)) return;
    all.push_back(more);
  };
  add(&OffloadOptions::optimizer, 0);
  add(&OffloadOptions::gradients, 2);
  add(&OffloadOptions::parameters, 3);
  return all;
}

std::string words_of(const OffloadOptions& options) {
  std::vector<std::string> places;
  const std::string where = options.to_host ? "=host" : "=file";
  if (options.parameters) places.push_back("parameters" + where);
  if (options.gradients) places.push_back("gradients" + where);
  if (options.optimizer) places.push_back("optimizer" + where);
  if (options.activations) places.push_back("activations" + where);
  return "--place " + join(places, ",");
}

std::unique_ptr<Memory> tier_of(const OffloadOptions& options, const Memory& memory, const DevicePlugin* device,
                                CopyMeter* meter) {
  if (!options.any()) return nullptr;
  if (!memory.stores())
    return std::make_unique<PhantomMemory>(Device{options.to_host ? Device::Kind::pinned : Device::Kind::file, 0}, meter);
  if (!options.to_host) return std::make_unique<FileTier>(options.folder);
  require(device != nullptr, "tensors that are on the host cannot be offloaded to the host");
  return cuda_memory(*device, -1);
}

std::string about(const OffloadOptions& options, const Memory& tier) {
  return options.to_host ? "the host's memory" : dynamic_cast<const FileTier&>(tier).about();
}

}  // namespace chorale
