// A system of accelerators, as a machine file describes it: the accelerator, the links of a host, the network between hosts,
// and the software. Chorale predicts the time of a step on the system (parallel/planner/). The system need not exist yet.
// docs/machines.md lists all keys, with units and ranges. Each machine file states the sources of its values.
//
//   [accelerator]           [host]                  [network]               [software]
//   bandwidth = 2.039e12    accelerators = 8        adapters = 8            launch = 42e-6
//   [[accelerator.product]] link = 230e9            adapter = 22e9          attention = "unfused"
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace chorale {

// The rate at which an accelerator multiplies matrices of one number format.
struct ProductRate {
  std::string type;      // f64, f32, bf16, f16 or fp8
  double flops = 0;      // 1/s: peak rate
  double reached = 1;    // the fraction of the peak that large products reach
  double ramp = 0;       // the start and the end of a tile take as much time as this many elements of k
  double attention = 1;  // the fraction of the peak that fused attention reaches
};

struct Accelerator {
  std::string name;
  double memory = 0;     // bytes
  int units = 1;         // multiprocessors, which compute tiles in parallel
  double bandwidth = 0;  // B/s of memory
  double streamed = 1;   // the fraction of `bandwidth` that kernels without products reach
  double start = 0;      // s: time of the start and the end of a kernel
  double watts = 0;      // 0: unknown
  std::vector<ProductRate> products;
};

struct HostLinks {
  int accelerators = 1;  // number of accelerators per host, or per largest group connected by fast links
  double link = 0;       // B/s that an accelerator sends in a ring while it receives at the same rate
  double latency = 0;    // s per message
  double offload = 0;    // B/s of copies from an accelerator to the host's memory, and of copies back; 0: unknown
  double memory = 0;     // B/s of the host's memory for updates on the host, shared by its accelerators; 0: unknown
};

struct NetworkLinks {
  double adapters = 0;     // number of network adapters per host; 0: there is one host
  double adapter = 0;      // B/s that an adapter sends while it receives at the same rate
  double latency = 0;      // s per message
  double collective = 1;   // the fraction of `adapter` that collectives between hosts reach
  int group_adapters = 0;  // adapters that a group uses if it contains some, but not all, of a host's accelerators; 0: all
  double slow_hosts = 0;   // the fraction of hosts that are slow
  double slow_by = 0;      // slowdown of a slow host, relative to the time of a step
};

// The properties of the program that runs the step, where it may differ from Chorale. The defaults describe Chorale.
struct Software {
  double launch = 0;           // s of the host thread per kernel launch
  double micro_batch = 0;      // s of the host thread per micro-batch, in addition to launches
  int parameter_hooks = 0;     // launches per parameter of a block and micro-batch, in addition to kernels
  double message = 0;          // s from the arrival of a message between stages to the start of the next kernel
  double call = 0;             // s: delay of each collective of tp
  bool overlaps_calls = true;  // collectives of tp run at the same time as products, if the step allows it
  double hidden_calls = 0;     // the fraction of such a collective that is hidden behind tiles of products
  bool fused_attention = true;
  int fused_softmax_heads = 0;          // unfused: softmax is a single kernel only if samples·heads is a multiple of this
                                        // value
  bool recomputes_attention = false;    // unfused: the backward pass recomputes scores
  bool fused_sums = true;               // products accumulate directly into gradients; false: a separate kernel adds them
  double logit_bytes = 0;               // bytes read and written per logit, in addition to the bytes of the step
  bool splits_messages = false;         // each tp rank sends a part of a message, and the receivers gather the parts
  bool gathers_ahead = false;           // ZeRO-1 and 2 gather parameter values during the next step
  bool hides_messages = false;          // messages between stages add no time to the step
  int call_adapters = 0;                // network adapters that a collective uses on a host; 0: all adapters of its ranks
  bool scatters_by_all_reduce = false;  // a reduce_scatter sends as many bytes as an all_reduce
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
