#include "parallel/step/rank_memory.hpp"

namespace chorale {

RankMemory::RankMemory(Memory& memory, std::int64_t limit, bool contiguous, const OffloadOptions& offload,
                       const DevicePlugin* device, CopyMeter* meter)
    : ledger_(limit), allocator_(memory, ledger_), in_tier_(tier_of(offload, memory, device, meter)) {
  if (in_tier_) tier_.emplace(*in_tier_, tier_ledger_);
  if (!contiguous || !memory.stores()) return;
  arena_.emplace(memory);
  for (const Category category : {Category::activations, Category::grads}) allocator_.take_from(*arena_, category);
}

FileTier::Times RankMemory::file_times() const {
  const auto* const file = dynamic_cast<const FileTier*>(in_tier_.get());
  return file ? file->times() : FileTier::Times{};
}

}  // namespace chorale
