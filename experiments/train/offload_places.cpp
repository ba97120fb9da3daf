#include "experiments/train/offload_places.hpp"

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

// Returns the smallest number of bytes that any `ranks` ranks offload together.
std::int64_t least_in_file(const TrainingOptions& options, const Layout& layout, std::int64_t ranks) {
  std::vector<std::int64_t> bytes;
  for (std::int64_t rank = 0; rank < layout.ranks(); ++rank)
    bytes.push_back(planned_in_file({.options = options, .layout = layout}, static_cast<int>(rank)));
  std::ranges::sort(bytes);
  return std::accumulate(bytes.begin(), bytes.begin() + std::min(ranks, std::ssize(bytes)), std::int64_t{0});
}

}  // namespace

void OffloadPlaces::declare(Options& o, OffloadOptions& offload) {
  o.section("offload", Effect::speed);
  o.add("place", places_,
        "what lives in a file, such as optimizer=file, or for a GPU on the host, optimizer=host; it comes to "
        "memory when it is needed; cpu: host for a GPU, else memory")
      .one_of(all_places());
  offload.declare(o, [this] {
    return places_any("=file") ? "" : places_any("=host") ? "nothing is offloaded to a file" : "nothing is offloaded";
  });
}

bool OffloadPlaces::places_any(const std::string& where) const {
  return std::ranges::any_of(places_, [&](const std::string& place) { return place.ends_with(where); });
}

std::int64_t OffloadPlaces::places_of(const std::string& what) const {
  std::set<std::string> different;
  for (const std::string& place : places_)
    if (place.starts_with(what + "=")) different.insert(place);
  return std::ssize(different);
}

void OffloadPlaces::place(OffloadOptions& offload, bool on_accelerator) const {
  offload.to_host = places_any("=host") || (on_accelerator && places_any("=cpu"));
  for (const char* what : {"parameters", "gradients", "optimizer", "activations"})
    if (places_of(what) > 1)
      usage_error(fmt::format("two places for {}", what), fmt::format("place = {}", join(places_, ",")),
                  fmt::format("give one of them: --place {}=file", what));
  if (offload.to_host && places_any("=file"))
    usage_error("tensors are offloaded to the host or to a file, not to both", fmt::format("place = {}", join(places_, ",")),
                "name one of host and file");
  const auto is_away = [&](const std::string& what) {
    return std::ranges::any_of(places_, [&](const std::string& place) {
      return place == what + "=file" || place == what + "=host" || (on_accelerator && place == what + "=cpu");
    });
  };
  offload.parameters = is_away("parameters");
  offload.gradients = is_away("gradients");
  offload.optimizer = is_away("optimizer");
  offload.activations = is_away("activations");
}

std::string check_offload(const TrainingOptions& options, const Layout& layout, std::int64_t ranks_here,
                          bool on_accelerator) {
  const OffloadOptions& offload = options.offload;
  if (offload.to_host && !on_accelerator)
    usage_error("without a GPU, tensors are on the host already", "--place …=host with --device cpu",
                "use --place …=file, or --device cuda");
  if (const MaybeMisfit misfit = misfit_of_offload(offload, layout, on_accelerator))
    usage_error(misfit->what, misfit->numbers, "try " + misfit->remedy);
  if (!offload.any() || offload.to_host) return "";
  const FileTier tier(offload.folder);
  const std::int64_t needed = least_in_file(options, layout, ranks_here), free = tier.free_bytes();
  if (free >= 0 && free < needed)
    usage_error("the folder for offloaded tensors has too little room",
                fmt::format("{}: {} free, {} needed by {} of this host", offload.folder, human_bytes(free),
                            human_bytes(needed), ranks_here == 1 ? "a rank" : fmt::format("{} ranks", ranks_here)),
                "make room, choose another --offload-folder, or offload less");
  if (!tier.in_memory()) return "";
  return fmt::format("{} is on tmpfs, which is memory too: nothing is gained by offloading there", offload.folder);
}

}  // namespace chorale::train
