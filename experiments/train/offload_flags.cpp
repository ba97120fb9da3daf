#include "experiments/train/offload_flags.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "src/base/error.hpp"
#include "src/base/text.hpp"
#include "src/tier/file_tier.hpp"

namespace chorale::train {
namespace {

std::vector<std::string> all_places() {
  std::vector<std::string> all;
  for (const char* what : {"parameters", "gradients", "optimizer"})
    for (const char* where : {"memory", "host", "file"}) all.push_back(fmt::format("{}={}", what, where));
  return all;
}

}  // namespace

void OffloadFlags::declare(Options& o) {
  o.section("offload");
  const auto anything = [this] {
    return places_any("=file") ? "" : places_any("=host") ? "nothing is offloaded to a file" : "nothing is offloaded";
  };
  o.add("place", places_,
        "what lives in a file, such as optimizer=file, or for a GPU on the host, optimizer=host; it comes to "
        "memory when it is needed")
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

bool OffloadFlags::places_any(const std::string& where) const {
  return std::ranges::any_of(places_, [&](const std::string& place) { return place.ends_with(where); });
}

bool OffloadFlags::is_away(const std::string& what) const {
  return std::ranges::any_of(places_, [&](const std::string& p) { return p == what + "=file" || p == what + "=host"; });
}

void OffloadFlags::complete(TrainingOptions& o) const {
  o.offload = {is_away("parameters"), is_away("gradients"), is_away("optimizer"), folder_, window_bytes_ / 4096 * 1024};
  o.offload.to_host = places_any("=host");
  o.update = update_time_named(update_);
}

std::string OffloadFlags::check(bool on_device) const {
  if (places_any("=host") && places_any("=file"))
    usage_error("tensors are offloaded to the host or to a file, not to both", "--place " + join(places_, ","),
                "name one of host and file");
  if (places_any("=host") && !on_device)
    usage_error("without a GPU, tensors are on the host already", "--place " + join(places_, ",") + " with --device cpu",
                "use --place …=file, or --device cuda");
  if (!places_any("=file")) return "";
  const FileTier tier(folder_);
  if (!tier.in_memory()) return "";
  return fmt::format("{} is on tmpfs, which is memory too: nothing is gained by offloading there", folder_);
}

}  // namespace chorale::train
