// `chorale info` shows the features that were built in. For each feature it says whether the feature works on this machine,
// or why not. Under mpirun it also shows where the ranks run. With --layout it instead draws the ranks on their hosts, and
// says which axes of the layout cross hosts. With --run-dir it also makes a run folder whose record has facts about the
// build and the ranks.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "collectives/backends/backends.hpp"
#include "experiments/common/hosts_option.hpp"
#include "experiments/common/pinning.hpp"
#include "experiments/common/run_record.hpp"
#include "experiments/train/layout_flags.hpp"
#include "experiments/train/team.hpp"
#include "src/base/built.hpp"
#include "src/base/error.hpp"
#include "src/base/host.hpp"
#include "src/base/screen.hpp"
#include "src/base/text.hpp"
#include "src/base/text_table.hpp"
#include "src/math/bf16/engines.hpp"
#include "src/math/products.hpp"
#include "src/memory/device_plugin.hpp"
#include "src/record/h5.hpp"
#include "src/record/run_folder.hpp"

namespace chorale {
namespace {

using Json = nlohmann::ordered_json;

Json describe_build() {
  return {{"version", version},
          {"commit", built("git_commit") + (built("git_dirty") == "yes" ? ", with uncommitted changes" : "")},
          {"compiler", built("compiler")},
          {"flags", built("cxxflags")},
          {"mpi", mpi::library_name()},
          {"hdf5", h5::version()},
          {"products", product_library()}};
}

Json describe_machine() {
  Json machine{{"host", host_name()},
               {"cpu", cpu_model()},
               {"cores", online_cores()},
               {"memory_bytes", memory_bytes()},
               {"bf16_attention", attention::bf16_engine_name()}};
  for (const Limit& limit : limits()) machine[limit.name] = limit.value;
  return machine;
}

Json describe_backends() {
  Json all = Json::array();
  for (const Backend& backend : all_backends()) {
    const Availability found = probe(backend);
    Json row{{"name", backend.name}, {"about", backend.about}, {"available", found.works}};
    row[found.works ? "detail" : "why_not"] = found.detail;
    all.push_back(std::move(row));
  }
  return all;
}

Json describe_devices() {
  const DevicePlugin plugin;
  std::string why_none;
  Json devices = Json::array();
  for (const CudaDevice& device : cuda_devices(plugin, &why_none))
    devices.push_back({{"name", device.name},
                       {"compute_capability", fmt::format("{}.{}", device.major, device.minor)},
                       {"memory_bytes", device.memory_bytes}});
  Json found{{"cuda", devices}};
  if (devices.empty())
    found["why_none"] = why_none;
  else
    found["auto_backend"] = best_backend(true, joins_here);
  found["buffers"] = "direct on nccl, staged through pinned host memory on shm; for mpi and ucx see the list of backends";
  return found;
}

Json describe_ranks(const std::vector<RankFacts>& ranks) {
  Json all = Json::array();
  for (std::size_t r = 0; r < ranks.size(); ++r)
    all.push_back({{"rank", r},
                   {"host", ranks[r].host},
                   {"pid", ranks[r].pid},
                   {"local_rank", ranks[r].local_rank},
                   {"socket", cpu_ranges(ranks[r].sockets)},
                   {"cpuset", cpu_ranges(ranks[r].cpus)},
                   {"cpu", ranks[r].cpu},
                   {"threads", ranks[r].threads},
                   {"clock_offset_seconds", ranks[r].clock_offset}});
  return all;
}

Json describe_topology(const Topology& topology) {
  Json hosts = Json::array();
  for (int host = 0; host < topology.hosts(); ++host)
    hosts.push_back({{"host", topology.names[static_cast<std::size_t>(host)]}, {"ranks", topology.ranks_on(host)}});
  return hosts;
}

// Collective. On rank 0, returns where each rank runs on its host, such as "socket 0, cores 0-3, GPU 1".
std::vector<std::string> places_of(const mpi::Runtime& runtime) {
  const std::vector<int> cpus = allowed_cpus(), sockets = sockets_of(cpus);
  std::vector<std::string> words;
  if (!sockets.empty()) words.push_back("socket " + cpu_ranges(sockets));
  words.push_back((cpus.size() == 1 ? "core " : "cores ") + cpu_ranges(cpus));
  const DevicePlugin plugin;
  std::string why_none;
  const DeviceShare share = share_of_devices(runtime, cuda_devices(plugin, &why_none));
  if (share.devices > 0) words.push_back(fmt::format("GPU {}", share.index()));
  return mpi::gather(runtime.world(), join(words, ", "));
}

// Formats a value as text. The unit is part of the name: "memory_bytes" gives "1.5 GiB". JSON has the plain value.
std::string cell_of(const Json& value, const std::string& name = "") {
  if (name.ends_with("_bytes")) return human_bytes(value);
  if (name.ends_with("_seconds")) return human_seconds(value);
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string heading(const std::string& name) { return name.substr(0, std::min(name.find("_bytes"), name.find("_seconds"))); }

// Prints a heading and then text, wrapped to the width of the screen.
void print_words(const std::string& head, const std::string& words) {
  fmt::print("{}", paragraph(head, words, screen_columns()));
}

void print_pairs(const char* title, const Json& object) {
  fmt::print("{}\n", title);
  for (const auto& [name, value] : object.items())
    print_words(fmt::format("  {:<16} ", heading(name)), cell_of(value, name));
  fmt::print("\n");
}

void print_as_text(const Json& all) {
  print_pairs("chorale", all["chorale"]);
  print_pairs("machine", all["machine"]);
  fmt::print("backends\n");
  for (const Json& b : all["backends"])
    print_words(fmt::format("  {:<8} {:<4} ", cell_of(b["name"]), b["available"] ? "yes" : "no"),
                cell_of(b[b["available"] ? "detail" : "why_not"]));
  fmt::print("\ndevices\n");
  for (const Json& d : all["devices"]["cuda"])
    fmt::print("  {} (compute capability {}), {}\n", cell_of(d["name"]), cell_of(d["compute_capability"]),
               cell_of(d["memory_bytes"], "memory_bytes"));
  if (all["devices"].contains("why_none")) print_words("  none: ", cell_of(all["devices"]["why_none"]));
  print_words("  device buffers: ", cell_of(all["devices"]["buffers"]));
  if (all["devices"].contains("auto_backend"))
    fmt::print("  --device cuda --backend auto: {}\n", cell_of(all["devices"]["auto_backend"]));
  fmt::print("\nranks\n");
  std::vector<std::string> columns;
  for (const auto& [name, value] : all["ranks"][0].items()) columns.push_back(heading(name));
  TextTable table(columns);
  for (const Json& r : all["ranks"]) {
    std::vector<std::string> cells;
    for (const auto& [name, value] : r.items()) cells.push_back(cell_of(value, name));
    table.add(std::move(cells));
  }
  fmt::print("{}", table.print("text"));
}

class Info final : public Command {
 public:
  void declare(Options& options) override {
    options.add("format", format_, "output format").one_of({"text", "json"}).changes(Effect::output);
    options.add("layout", layout_, "draw which rank sits where under this layout, and which axes cross hosts").words("WORD");
    const auto no_layout = [this] { return layout_.empty() ? "no layout is given" : ""; };
    train::declare_order(options, order_).only_where("a layout", no_layout);
    options.add("hosts", hosts_, "draw hosts with so many ranks each, as 2,3,1, instead of those of this launch")
        .words("N,N,…")
        .only_where("a layout", no_layout);
    options.add("run-dir", run_dir_, "create a folder with a record in this folder").words("DIR").changes(Effect::output);
  }

  void check(const Launch& launch) override {
    if (!layout_.empty()) pinning_ = imagined(launch);
    if (!run_dir_.empty()) require_writable(run_dir_);  // on every rank, because each writes a log to this folder
  }

  int run(Session& session) override {
    const auto ranks = gather_rank_facts(*session.runtime, session.clock);
    if (pinning_ && pinning_->topology.names.empty()) {
      pinning_->topology = topology_of(*session.runtime);
      pinning_->places = places_of(*session.runtime);
    }
    if (session.runtime->rank() == 0) print(ranks);
    if (run_dir_.empty()) return 0;
    RunRecord run = open_run_record(run_dir_, session, ranks);
    if (run.recorder) {
      run.recorder->finish("ok");
      run.log.info("recorded in {}", run.recorder->file().string());
    }
    return 0;
  }

 private:
  // If there is no launch, returns the ranks to draw, with their hosts. These ranks are on the hosts of --hosts, or on one
  // host if a single process draws a layout of several ranks. In a launch, the topology is not known yet, so `topology`
  // stays empty.
  Pinning imagined(const Launch& launch) const {
    Pinning pinning{.layout = parse_layout(layout_, 0)};
    const bool launched = hosts_.empty() && launch.size > 1;
    if (!hosts_.empty()) pinning.topology = Topology::parse(hosts_, 0);
    const std::int64_t one_replica = pinning.layout.shards() * pinning.layout.stages() * pinning.layout.context_ranks();
    const std::int64_t world = launched          ? launch.size
                               : !hosts_.empty() ? std::ssize(pinning.topology.host_of)
                                                 : std::max<std::int64_t>(pinning.layout.replicas(), 1) * one_replica;
    if (!launched && world > most_ranks_shown)
      usage_error("too many ranks to draw", fmt::format("{} ranks", world),
                  fmt::format("name a layout of at most {} ranks", most_ranks_shown));
    pinning.layout = inferred(pinning.layout, world);
    if (pinning.layout.ranks() != world)
      usage_error("the layout needs another number of ranks",
                  fmt::format("{} has {} ranks; there are {}", to_string(pinning.layout), pinning.layout.ranks(), world),
                  "give --hosts numbers with that sum, or another layout");
    if (const AxisOrder order = train::order_of(order_); !order.empty()) pinning.layout.order = order;
    if (!launched && hosts_.empty()) pinning.topology = Topology::of_one_host(static_cast<int>(world));
    return pinning;
  }

  void print(const std::vector<RankFacts>& ranks) const {
    if (pinning_ && format_ == "text") return fmt::print("{}", drawing_of(*pinning_));
    Json all{{"chorale", describe_build()},
             {"machine", describe_machine()},
             {"backends", describe_backends()},
             {"devices", describe_devices()},
             {"topology", describe_topology(topology_of(ranks))},
             {"ranks", describe_ranks(ranks)}};
    if (pinning_) all["seats"] = json_of(*pinning_);
    if (format_ == "json")
      fmt::print("{}\n", all.dump(1, ' ', false, Json::error_handler_t::replace));
    else
      print_as_text(all);
  }

  std::string format_ = "text", run_dir_, layout_, hosts_;
  std::vector<std::string> order_{"auto"};
  std::optional<Pinning> pinning_;  // set if --layout is given
};

}  // namespace

std::unique_ptr<Command> make_info() { return std::make_unique<Info>(); }

}  // namespace chorale
