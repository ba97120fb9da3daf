#include "parallel/offload.hpp"

#include <fmt/format.h>

#include "src/tier/file_tier.hpp"

namespace chorale {

MaybeMisfit misfit_of_offload(const OffloadOptions& options, const Layout& layout) {
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

std::unique_ptr<Memory> tier_of(const OffloadOptions& options, const Memory& memory) {
  if (!options.any()) return nullptr;
  if (!memory.stores()) return std::make_unique<PhantomMemory>(Device{Device::Kind::file, 0});
  return std::make_unique<FileTier>(options.folder);
}

}  // namespace chorale
