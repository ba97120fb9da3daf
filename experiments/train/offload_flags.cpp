#include "experiments/train/offload_flags.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "src/tier/file_tier.hpp"

namespace chorale::train {
namespace {

std::vector<std::string> all_places() {
  std::vector<std::string> all;
  for (const char* what : {"parameters", "gradients", "optimizer"})
    for (const char* where : {"memory", "file"}) all.push_back(fmt::format("{}={}", what, where));
  return all;
}

}  // namespace

void OffloadFlags::declare(Options& o) {
  o.section("offload");
  const auto anything = [this] {
    const bool some = std::ranges::any_of(places_, [](const std::string& place) { return place.ends_with("=file"); });
    return some ? "" : "nothing is offloaded";
  };
  o.add("place", places_, "what lives in a file, such as optimizer=file; it comes to memory when it is needed")
      .one_of(all_places());
  o.add("offload-folder", folder_, "folder of this file, on a local disk; the file has no name, so none is left behind")
      .words("DIR")
      .only_where("offload", anything);
  o.add_bytes("offload-window", window_bytes_,
              "bytes of each tensor that an update of offloaded states has in memory at once")
      .range(4096, 1e12)
      .only_where("offload", anything);
  o.add("update", update_,
        "when the optimizer updates: after the norm; during the backward pass; the same, but taken back if "
        "gradients are clipped; or during the next step")
      .one_of({std::begin(update_times), std::end(update_times)});
}

bool OffloadFlags::in_file(const std::string& what) const { return std::ranges::count(places_, what + "=file") > 0; }

void OffloadFlags::complete(TrainingOptions& o) const {
  o.offload = {in_file("parameters"), in_file("gradients"), in_file("optimizer"), folder_, window_bytes_ / 4096 * 1024};
  o.update = update_time_named(update_);
}

std::string OffloadFlags::check() const {
  TrainingOptions options;
  complete(options);
  if (!options.offload.any()) return "";
  const FileTier tier(folder_);
  if (!tier.in_memory()) return "";
  return fmt::format("{} is on tmpfs, which is memory too: nothing is gained by offloading there", folder_);
}

}  // namespace chorale::train
