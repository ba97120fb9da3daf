#include "experiments/train/offload_flags.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "parallel/plan/plan.hpp"
#include "src/base/error.hpp"
#include "src/base/text.hpp"
#include "src/tier/file_tier.hpp"

namespace chorale::train {
namespace {

std::vector<std::string> all_places() {
  std::vector<std::string> all;
  for (const char* what : {"parameters", "gradients", "optimizer", "activations"})
    for (const char* where : {"memory", "cpu", "host", "file"}) all.push_back(fmt::format("{}={}", what, where));
  return all;
}

// The bytes of those ranks that offload the fewest.
std::int64_t least_in_file(const TrainingOptions& options, const Layout& layout, std::int64_t ranks) {
  std::vector<std::int64_t> bytes;
  for (std::int64_t rank = 0; rank < layout.ranks(); ++rank)
    bytes.push_back(planned_in_file({.options = options, .layout = layout}, static_cast<int>(rank)));
  std::ranges::sort(bytes);
  return std::accumulate(bytes.begin(), bytes.begin() + std::min(ranks, std::ssize(bytes)), std::int64_t{0});
}

}  // namespace

void OffloadFlags::declare(Options& o) {
  o.section("offload");
  const auto anything = [this] {
    return places_any("=file") ? "" : to_host() ? "nothing is offloaded to a file" : "nothing is offloaded";
  };
  o.add("place", places_,
        "what lives in a file, such as optimizer=file, or for a GPU on the host, optimizer=host; it comes to "
        "memory when it is needed; cpu: host for a GPU, else memory")
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

std::int64_t OffloadFlags::places_of(const std::string& what) const {
  std::set<std::string> different;
  for (const std::string& place : places_)
    if (place.starts_with(what + "=")) different.insert(place);
  return std::ssize(different);
}

bool OffloadFlags::is_away(const std::string& what) const {
  return std::ranges::any_of(places_, [&](const std::string& place) {
    return place == what + "=file" || place == what + "=host" || (on_device_ && place == what + "=cpu");
  });
}

void OffloadFlags::complete(TrainingOptions& o) const {
  for (const char* what : {"parameters", "gradients", "optimizer", "activations"})
    if (places_of(what) > 1)
      usage_error(fmt::format("two places for {}", what), fmt::format("place = {}", join(places_, ",")),
                  fmt::format("give one of them: --place {}=file", what));
  if (to_host() && places_any("=file"))
    usage_error("tensors are offloaded to the host or to a file, not to both", fmt::format("place = {}", join(places_, ",")),
                "name one of host and file");
  o.offload = {is_away("parameters"), is_away("gradients"), is_away("optimizer"), folder_, window_bytes_ / 4096 * 1024};
  o.offload.activations = is_away("activations");
  o.offload.to_host = to_host();
  o.update = update_time_named(update_);
}

std::string OffloadFlags::check(const TrainingOptions& options, const Layout& layout, std::int64_t ranks_here) const {
  if (options.offload.to_host && !on_device_)
    usage_error("without a GPU, tensors are on the host already", "--place …=host with --device cpu",
                "use --place …=file, or --device cuda");
  if (const MaybeMisfit misfit = misfit_of_offload(options.offload, layout, on_device_))
    usage_error(misfit->what, misfit->numbers, "try " + misfit->remedy);
  if (!options.offload.any() || options.offload.to_host) return "";
  const FileTier tier(folder_);
  const std::int64_t needed = least_in_file(options, layout, ranks_here), free = tier.free_bytes();
  if (free >= 0 && free < needed)
    usage_error("the folder for offloaded tensors has too little room",
                fmt::format("{}: {} free, {} needed by {} of this host", folder_, human_bytes(free), human_bytes(needed),
                            ranks_here == 1 ? "a rank" : fmt::format("{} ranks", ranks_here)),
                "make room, choose another --offload-folder, or offload less");
  if (!tier.in_memory()) return "";
  return fmt::format("{} is on tmpfs, which is memory too: nothing is gained by offloading there", folder_);
}

}  // namespace chorale::train
