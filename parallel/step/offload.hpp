// ZeRO-Infinity (Rajbhandari et al. 2021): shards of values, gradients and optimizer states live in a file, so that a rank
// can train a model that is larger than its memory. Each shard is read into memory when it is needed:
//
//   values       a unit's shard is read while the previous unit computes             parallel/step/zero.cpp
//   gradients    a shard is written while the next unit computes, read for the norm  parallel/step/zero.cpp, training.cpp
//   optimizer    window by window: read, update, write                               layers/optimizer.cpp
//   activations  block inputs that full recomputation keeps                          layers/kept_inputs.cpp
//
// With a GPU, the tier is the host's pinned memory (ZeRO-Offload, Ren et al. 2021). The host computes the update, so the
// optimizer states stay on the host. Gradients are copied to the host, which also computes their norm, and new values are
// copied back to the GPU.
//
// Offloading does not change the order of any computation, so a run is bit-identical to a run without offload. With Ψ
// elements on a rank, f32 and one micro-batch, a step transfers the following numbers of bytes, all of which a plan counts:
//
//                read                                   written
//   values       12Ψ: forward, backward, update         4Ψ
//   gradients    8Ψ: norm, update                       4Ψ
//   optimizer    8Ψ, with 16-bit values 12Ψ             as many
//   activations  e·b·s·h for each block                 as many: b·s tokens of h elements of e bytes
//
// These formulas leave out some transfers. Gradients that are summed along rep, or across stages for a tied table, are read
// and written one more time. The values of a tied table are read two more times. Gradients that ranks sum in bf16 need only
// half as many bytes.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "parallel/layout/layout_rules.hpp"
#include "src/memory/device_plugin.hpp"
#include "src/memory/memory.hpp"

namespace chorale {

class Options;

struct OffloadOptions {
  bool parameters = false, gradients = false, optimizer = false;  // true: these tensors live in the tier
  std::string folder = ".";                                       // folder of the file
  std::int64_t window_bytes = 4 << 20;  // bytes of each tensor that an update keeps in memory at once
  bool to_host = false;                 // true: the tier is the host's memory, for a GPU; false: the tier is a file
  bool activations = false;             // true: the activations that full recomputation keeps live in the tier
  // Declares all options except the places, which are a list of words (experiments/train/offload_places.hpp).
  void declare(Options& options, const std::function<std::string()>& nothing_in_file);
  bool any() const { return parameters || gradients || optimizer || activations; }
  std::int64_t window_elements() const;  // elements of four bytes in a window, rounded down to whole pages
};

// Returns why ranks cannot offload these tensors, or nothing if they can. A GPU cannot offload to a file, and values and
// gradients can be offloaded only if ZeRO shards them.
MaybeMisfit misfit_of_offload(const OffloadOptions& options, const Layout& layout, bool on_device);
// Options that offload more than `now`, as far as the layout allows. Each entry offloads one more kind of tensor than the
// previous one.
std::vector<OffloadOptions> more_in_tier(const OffloadOptions& now, const Layout& layout);
std::string words_of(const OffloadOptions& options);  // "--place gradients=file,optimizer=file"
// The tier's memory: null if nothing is offloaded, a phantom if `memory` is a phantom. `device`: the GPU, if the tier is the
// host.
std::unique_ptr<Memory> tier_of(const OffloadOptions& options, const Memory& memory, const DevicePlugin* device,
                                CopyMeter* meter = nullptr);
std::string about(const OffloadOptions& options, const Memory& tier);  // "a file in /scratch, by io_uring, unbuffered"

}  // namespace chorale
