// A system of accelerators, as a machine file describes it: the accelerator, the links of a host, the network between hosts,
// and the software. Chorale predicts the time of a step on it (parallel/planner/); the system need not exist yet.
// docs/machines.md lists all keys, with units and ranges. The files say where their numbers come from.
//
//   [accelerator]           [host]                  [network]               [software]
//   bandwidth = 2.039e12    accelerators = 8        adapters = 8            launch = 42e-6
//   [[accelerator.product]] link = 230e9            adapter = 22e9          attention = "unfused"
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace chorale {

// How fast an accelerator multiplies matrices of one number format.
struct ProductRate {
  std::string type;      // f64, f32, bf16, f16 or fp8
  double flops = 0;      // 1/s: the peak
  double reached = 1;    // the share of the peak that large products reach
  double ramp = 0;       // the start and the end of a tile take as long as this many elements of k
  double attention = 1;  // the share of the peak that fused attention reaches
};

struct Accelerator {
  std::string name;
  double memory = 0;     // bytes
  int units = 1;         // multiprocessors, which compute tiles side by side
  double bandwidth = 0;  // B/s of memory
  double streamed = 1;   // the share of `bandwidth` that kernels without products reach
  double start = 0;      // s: the start and the end of a kernel
  double watts = 0;      // 0: unknown
  std::vector<ProductRate> products;
};

struct HostLinks {
  int accelerators = 1;  // per host, or per largest group that fast links join
  double link = 0;       // B/s that an accelerator sends in a ring, while it receives as much
  double latency = 0;    // s of a message
  double offload = 0;    // B/s of copies from an accelerator to the host's memory, and equally back; 0: unknown
  double memory = 0;     // B/s of the host's memory, for updates on the host, shared by its accelerators; 0: unknown
};

struct NetworkLinks {
  double adapters = 0;     // per host; 0: there is one host
  double adapter = 0;      // B/s that an adapter sends, while it receives as much
  double latency = 0;      // s of a message
  double collective = 1;   // the share of `adapter` that collectives reach if they cross hosts
  int group_adapters = 0;  // adapters that a group uses if some, but not all, of a host's accelerators are in it; 0: all
  double slow_hosts = 0;   // the share of hosts that are slow
  double slow_by = 0;      // by how much, relative to the time of a step
};

// The differences between Chorale and the program that runs the step. The defaults describe Chorale.
struct Software {
  double launch = 0;           // s of the host thread per kernel launch
  double micro_batch = 0;      // s of the host thread per micro-batch, in addition to launches
  int parameter_hooks = 0;     // launches per parameter of a block and micro-batch, beside kernels
  double message = 0;          // s after a message between stages, until the next kernel runs
  double call = 0;             // s by which each collective of tp is late
  bool overlaps_calls = true;  // collectives of tp run beside products, where the step allows it
  double hidden_calls = 0;     // the share of such a collective that is hidden behind tiles of products
  bool fused_attention = true;
  int fused_softmax_heads = 0;          // unfused: softmax is one kernel only if samples·heads is a multiple of this
  bool recomputes_attention = false;    // unfused: the backward pass computes scores again
  bool fused_sums = true;               // products accumulate into gradients; otherwise a separate kernel adds them
  double logit_bytes = 0;               // bytes read and written per logit, in addition to those of the step
  bool splits_messages = false;         // tp ranks send parts of a message, and gather them
  bool gathers_ahead = false;           // ZeRO-1 and 2 gather parameter values during the next step
  bool hides_messages = false;          // messages between stages add no time to the step
  int call_adapters = 0;                // network adapters that a collective uses on a host; 0: all that its ranks have
  bool scatters_by_all_reduce = false;  // a reduce_scatter sends as much as an all_reduce
};

struct System {
  Accelerator accelerator;
  HostLinks host;
  NetworkLinks network;
  Software software;
};

class TomlFields;                                           // toml_fields.hpp: the tables of a machine file
std::optional<System> system_of(TomlFields& machine_file);  // nullopt: the file has no accelerator
Software software_of(TomlFields table);

}  // namespace chorale
