// ZeRO-Infinity (Rajbhandari et al. 2021): shards of values, gradients and optimizer states are stored in a file, so that a
// rank can train a model that is larger than its memory. Each shard is read into memory when it is needed:
//
//   values       a unit's shard is read while the previous unit computes             parallel/step/zero.cpp
//   gradients    a shard is written while the next unit computes, read for the norm  parallel/step/zero.cpp, training.cpp
//   optimizer    window by window: read, update, write                               layers/optimizer.cpp
//   activations  block inputs that full recomputation keeps                          layers/kept_inputs.cpp
//
// With a GPU, the tier is the host's pinned memory (ZeRO-Offload, Ren et al. 2021). The host computes the update, so the
// optimizer states stay on the host. Gradients are copied to the host, which also computes the gradient norm. New values are
// copied back to the GPU.
//
// Offloading does not change the order of any computation, so results are bit-identical with and without offload. Let a rank
// hold Ψ elements in f32. With one micro-batch, a step then transfers the following numbers of bytes, which a plan also
// counts:
//
//                read                                   written
//   values       12Ψ: forward, backward, update         4Ψ
//   gradients    8Ψ: norm, update                       4Ψ
//   optimizer    8Ψ, with 16-bit values 12Ψ             as many
//   activations  e·b·s·h for each block                 as many: b·s tokens of h elements of e bytes
//
// These formulas omit some transfers. Gradients that are summed along rep, or across stages for a tied table, are read and
// written one more time. The values of a tied table are read two more times. Gradients that are summed in bf16 need half as
// many bytes.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include <chorale/training.hpp>
#include "parallel/layout/layout_rules.hpp"
#include "src/memory/device_plugin.hpp"
#include "src/memory/memory.hpp"

namespace chorale {

// Returns the reason why these tensors cannot be offloaded, if there is one. A GPU cannot offload to a file. Values and
// gradients can be offloaded only if ZeRO shards them.
MaybeMisfit misfit_of_offload(const OffloadOptions& options, const Layout& layout, bool on_device);
// Returns options that offload more than `now`, as far as the layout allows. Each entry offloads one more kind of tensor
// than the previous entry.
std::vector<OffloadOptions> more_in_tier(const OffloadOptions& now, const Layout& layout);
std::string words_of(const OffloadOptions& options);  // such as "--place gradients=file,optimizer=file"
// Returns the memory of the tier, or null if nothing is offloaded. If `memory` is phantom memory, so is the tier. `device`
// is the GPU if the tier is host memory.
std::unique_ptr<Memory> tier_of(const OffloadOptions& options, const Memory& memory, const DevicePlugin* device,
                                CopyMeter* meter = nullptr);
std::string about(const OffloadOptions& options, const Memory& tier);  // such as "a file in /scratch, by io_uring,
                                                                       // unbuffered"

}  // namespace chorale
