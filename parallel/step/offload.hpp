// ZeRO-Infinity (Rajbhandari et al. 2021): shards of values, gradients and the optimizer's states live in a file, so that a
// rank can train a model that is larger than its memory. Each comes to memory when it is needed:
//
//   values       a unit's shard is read while the unit before computes               parallel/step/zero.cpp
//   gradients    a shard is written while the next unit computes, read for the norm  parallel/step/zero.cpp, training.cpp
//   optimizer    window by window: read, update, write                               layers/optimizer.cpp
//   activations  inputs of blocks, which full recomputation keeps                    layers/kept_inputs.cpp
//
// On a GPU the tier is the host's memory (ZeRO-Offload, Ren et al. 2021), pinned, and the host computes the update: the
// optimizer's states never move. Gradients go down to the host, where the norm is computed, and new values go up.
//
// Nothing is computed in another order, so the bits are those of a run without offload. With Ψ elements on a rank, f32 and
// one micro-batch, a step moves these bytes, of which the plan counts every one:
//
//                read                                   written
//   values       12Ψ: forward, backward, update         4Ψ
//   gradients    8Ψ: norm, update                       4Ψ
//   optimizer    8Ψ, with 16-bit values 12Ψ             as many
//   activations  e·b·s·h for each block                 as many: b·s tokens of h elements of e bytes
//
// Not in these sums: gradients summed along rep, or of a tied table across stages, are read and written once more, and the
// values of a tied table are read twice more.
// Gradients that ranks sum in bf16 move half as many bytes.
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
  bool parameters = false, gradients = false, optimizer = false;  // which of them live in the tier
  std::string folder = ".";                                       // of the file
  std::int64_t window_bytes = 4 << 20;                            // of each tensor that an update brings to memory at once
  bool to_host = false;      // the tier is the host's memory, for a GPU; else it is a file
  bool activations = false;  // which full recomputation keeps
  // All but the places, which the program gives as a list of words (experiments/train/offload_places.hpp).
  void declare(Options& options, const std::function<std::string()>& nothing_in_file);
  bool any() const { return parameters || gradients || optimizer || activations; }
  std::int64_t window_elements() const;  // of four bytes; windows are whole pages
};

// Whether the layout keeps shards that can be offloaded, and the tier suits where the ranks compute.
MaybeMisfit misfit_of_offload(const OffloadOptions& options, const Layout& layout, bool on_device);
// Options that offload more than `now`, as far as the layout allows. Each offloads one more kind of tensor than the last.
std::vector<OffloadOptions> more_in_tier(const OffloadOptions& now, const Layout& layout);
std::string words_of(const OffloadOptions& options);  // "--place gradients=file,optimizer=file"
// Null if nothing is offloaded. A phantom if `memory` is one. `device`: the GPU that computes, if the tier is the host.
std::unique_ptr<Memory> tier_of(const OffloadOptions& options, const Memory& memory, const DevicePlugin* device,
                                CopyMeter* meter = nullptr);
std::string about(const OffloadOptions& options, const Memory& tier);  // "a file in /scratch, by io_uring, unbuffered"

}  // namespace chorale
