// A system of accelerators, as a machine file describes it: the accelerator, the links of a host, the network between hosts,
// and the software. Chorale predicts the time of a step on the system (parallel/prediction/). The system need not exist yet.
// docs/machine_file.md lists all keys, with units and ranges. Each machine file states the sources of its values.
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
  double flops = 0;      // peak rate in flops per second
  double reached = 1;    // the fraction of the peak that large products reach
  double ramp = 0;       // time to start and finish a tile, expressed as a number of elements of k
  double attention = 1;  // the fraction of the peak that fused attention reaches
};

struct Accelerator {
  std::string name;
  double memory = 0;     // bytes
  int units = 1;         // multiprocessors, which compute tiles in parallel
  double bandwidth = 0;  // memory bandwidth in B/s
  double streamed = 1;   // the fraction of `bandwidth` that kernels without products reach
  double start = 0;      // time to start and finish a kernel, in s
  double watts = 0;      // 0: unknown
  std::vector<ProductRate> products;
};

struct HostLinks {
  int accelerators = 1;  // number of accelerators per host, or per largest group connected by fast links
  double link = 0;       // bandwidth in B/s at which an accelerator in a ring sends, while it receives at the same rate
  double latency = 0;    // s per message
  double offload = 0;    // bandwidth of copies between an accelerator and host memory, per direction, in B/s, or 0 if it is
                         // unknown
  double memory = 0;     // host memory bandwidth for updates on the host, shared by its accelerators, in B/s, or 0 if it is
                         // unknown
  double file_read = 0, file_write = 0;  // bandwidths of the host's file for offload, shared by its accelerators, in B/s, or
                                         // 0 if they are unknown
};

struct NetworkLinks {
  double adapters = 0;     // number of network adapters per host, or 0 if there is only one host
  double adapter = 0;      // bandwidth in B/s at which an adapter sends, while it receives at the same rate
  double latency = 0;      // s per message
  double collective = 1;   // the fraction of `adapter` that collectives between hosts reach
  int group_adapters = 0;  // number of adapters used by a group with only some of a host's accelerators, or 0 if it uses all
                           // adapters
  int switch_hosts = 0;    // number of consecutive hosts under each leaf switch, or 0 if no switch limits the network
  double oversubscription = 1;  // bandwidth of the adapters under a leaf switch, relative to the switch's uplink
  double slow_hosts = 0;        // the fraction of hosts that are slow
  double slow_by = 0;           // slowdown of a slow host, relative to the time of a step

  bool has_switches() const { return switch_hosts > 0; }
  int switch_of(int host) const { return has_switches() ? host / switch_hosts : 0; }
  // The rate, in B/s, at which a leaf switch sends to all other leaf switches, while it receives at the same rate.
  double uplink() const { return switch_hosts * adapters * adapter / oversubscription; }
};

// The properties in which the program that runs the step can differ from Chorale. The defaults describe Chorale.
struct Software {
  double launch = 0;           // host-thread time per kernel launch, in s
  double micro_batch = 0;      // host-thread time per micro-batch in addition to launches, in s
  int parameter_hooks = 0;     // additional launches per micro-batch for each parameter of a block
  double message = 0;          // time from the arrival of a message between stages to the start of the next kernel, in s
  double call = 0;             // delay of each tensor-parallel (tp) collective, in s
  bool overlaps_calls = true;  // tp collectives overlap with matrix products, if the step allows it
  double hidden_calls = 0;     // the fraction of a tp collective that is hidden behind tiles of matrix products
  bool fused_attention = true;
  int fused_softmax_heads = 0;        // without fused attention, the softmax is a single kernel only if samples·heads is a
                                      // multiple of this number
  bool recomputes_attention = false;  // without fused attention, the backward pass recomputes scores
  bool fused_sums = true;             // whether matrix products accumulate directly into gradients; otherwise a separate
                                      // kernel adds them
  double logit_bytes = 0;             // bytes read and written per logit, in addition to the bytes of the step
  bool splits_messages = false;       // each tp rank sends a part of a message, and the receivers gather the parts
  bool gathers_ahead = false;         // ZeRO-1 and 2 gather parameter values during the next step
  bool hides_messages = false;        // messages between stages add no time to the step
  int call_adapters = 0;              // number of network adapters that a collective uses on a host, or 0 if it uses all
                                      // adapters of its ranks
  bool scatters_by_all_reduce = false;  // a reduce_scatter sends as many bytes as an all_reduce
};

struct System {
  std::string file;  // the name of the machine file
  Accelerator accelerator;
  HostLinks host;
  NetworkLinks network;
  Software software;
};

class TomlFields;                                           // toml_fields.hpp: the tables of a machine file
std::optional<System> system_of(TomlFields& machine_file);  // nullopt: the file has no accelerator
Software software_of(TomlFields table);

}  // namespace chorale
