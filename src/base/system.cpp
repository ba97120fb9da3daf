#include "src/base/system.hpp"

#include <algorithm>

#include "src/base/toml_fields.hpp"

namespace chorale {
namespace {

constexpr double most_rate = 1e18, most_seconds = 3600, most_count = 1e6, most_bytes = 1e18;

ProductRate product_of(TomlFields& fields) {
  fields.find("type");
  ProductRate rate{.type = fields.choice("type", {"bf16", "f16", "f32", "f64", "fp8"}),
                   .flops = fields.number("flops", 1, most_rate),
                   .reached = fields.number("reached", 0.01, 1),
                   .ramp = fields.number("ramp", 0, 1e5, 0),
                   .attention = fields.number("attention", 0.01, 1, 1)};
  fields.text("source", "");
  fields.finish();
  return rate;
}

Accelerator accelerator_of(TomlFields fields) {
  Accelerator accelerator{.name = fields.text("name"),
                          .memory = fields.number("memory", 1, most_bytes),
                          .units = static_cast<int>(fields.integer("units", 1, most_count)),
                          .bandwidth = fields.number("bandwidth", 1, most_rate),
                          .streamed = fields.number("streamed", 0.01, 1, 1),
                          .start = fields.number("start", 0, most_seconds, 0),
                          .watts = fields.number("watts", 0, 1e6, 0)};
  for (TomlFields& row : fields.tables("product")) {
    const ProductRate rate = product_of(row);
    if (std::ranges::count(accelerator.products, rate.type, &ProductRate::type) > 0)
      row.refuse("type", row.find("type"), "is that of another [[accelerator.product]], too");
    accelerator.products.push_back(rate);
  }
  if (accelerator.products.empty())
    fields.refuse("product", fields.find("name"), "is missing: how fast does it multiply? Add [[accelerator.product]]");
  fields.text("source", "");
  fields.finish();
  return accelerator;
}

HostLinks host_of(TomlFields fields) {
  HostLinks host{.accelerators = static_cast<int>(fields.integer("accelerators", 1, most_count)),
                 .link = fields.number("link", 1, most_rate),
                 .latency = fields.number("latency", 0, most_seconds),
                 .offload = fields.number("offload", 1, most_rate, 0),
                 .memory = fields.number("memory", 1, most_rate, 0),
                 .file_read = fields.number("file_read", 1, most_rate, 0),
                 .file_write = fields.number("file_write", 1, most_rate, 0)};
  fields.text("source", "");
  fields.finish();
  return host;
}

NetworkLinks network_of(TomlFields fields) {
  NetworkLinks network{.adapters = fields.number("adapters", 1, most_count),
                       .adapter = fields.number("adapter", 1, most_rate),
                       .latency = fields.number("latency", 0, most_seconds),
                       .collective = fields.number("collective", 0.01, 1, 1),
                       .group_adapters = static_cast<int>(fields.integer("group_adapters", 0, most_count, 0)),
                       .switch_hosts = static_cast<int>(fields.integer("switch_hosts", 1, most_count, 0)),
                       .oversubscription = fields.number("oversubscription", 1, 1000, 1),
                       .slow_hosts = fields.number("slow_hosts", 0, 1, 0),
                       .slow_by = fields.number("slow_by", 0, 100, 0)};
  if (fields.has("oversubscription") && !network.has_switches())
    fields.refuse("oversubscription", fields.find("oversubscription"),
                  "needs switch_hosts, the number of hosts of a switch");
  fields.text("source", "");
  fields.finish();
  return network;
}

}  // namespace

Software software_of(TomlFields fields) {
  const std::string attention = fields.choice("attention", {"fused", "unfused"});
  const auto yes = [&](const char* key, bool missing) { return fields.has(key) ? fields.flag(key) : missing; };
  Software software{.launch = fields.number("launch", 0, 1, 0),
                    .micro_batch = fields.number("micro_batch", 0, most_seconds, 0),
                    .parameter_hooks = static_cast<int>(fields.integer("parameter_hooks", 0, 100, 0)),
                    .message = fields.number("message", 0, most_seconds, 0),
                    .call = fields.number("call", 0, most_seconds, 0),
                    .overlaps_calls = yes("overlaps_calls", true),
                    .hidden_calls = fields.number("hidden_calls", 0, 1, 0),
                    .fused_attention = attention == "fused",
                    .fused_softmax_heads = static_cast<int>(fields.integer("fused_softmax_heads", 0, 1024, 0)),
                    .recomputes_attention = yes("recomputes_attention", false),
                    .fused_sums = yes("fused_sums", true),
                    .logit_bytes = fields.number("logit_bytes", 0, 1000, 0),
                    .splits_messages = yes("splits_messages", false),
                    .gathers_ahead = yes("gathers_ahead", false),
                    .hides_messages = yes("hides_messages", false),
                    .call_adapters = static_cast<int>(fields.integer("call_adapters", 0, most_count, 0)),
                    .scatters_by_all_reduce = yes("scatters_by_all_reduce", false)};
  fields.text("why", "");
  fields.finish();
  return software;
}

std::optional<System> system_of(TomlFields& top) {
  if (!top.has("accelerator")) return std::nullopt;
  System system{.accelerator = accelerator_of(*top.table("accelerator"))};
  top.find("host");
  system.host = host_of(*top.table("host"));
  if (auto network = top.table("network")) system.network = network_of(*network);
  if (auto software = top.table("software")) system.software = software_of(*software);
  return system;
}

}  // namespace chorale
