#include "parallel/prediction/stage_cost.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "parallel/step/assemble.hpp"
#include "src/base/error.hpp"
#include "src/base/round_up.hpp"
#include "src/base/text.hpp"
#include "src/simulation/engine.hpp"

namespace chorale {
namespace {

using Kind = StageCost::Act::Kind;

bool is_message(const Script::Call& call) { return call.from >= 0; }
bool is_copy(const Script::Call& call) { return call.copy != Script::Call::Copy::no; }

// The rate of a copy between an accelerator and its host or the host's file, or of an update by the host, in B/s. The
// accelerators of a host share its memory and its file.
double copy_rate(const Script::Call& call, const HostLinks& host) {
  using Copy = Script::Call::Copy;
  const auto share = [&](double all) { return all > 0 ? all / host.accelerators : forever; };
  if (call.copy == Copy::update) return share(host.memory);
  const double rate = std::min(host.offload, share(host.memory));
  if (call.group != "file") return rate;
  return std::min(rate, share(call.copy == Copy::in ? host.file_read : host.file_write));
}

// Turns the script of one rank into a StageCost.
class Pricing {
 public:
  Pricing(const StageRequest& request, const System& system, const Script& script)
      : options_(request.plan.options),
        layout_(request.plan.layout),
        system_(system),
        script_(script),
        width_(join(layout_.axes->names_of(layout_.divided(layout_.axes->dividing(Divides::width))), "+")),
        kernels_(system, request.products, request.others, options_.shape.dropout > 0) {}

  StageCost run() {
    for (const Script::Call& call : script_.calls()) keep(call);
    cost_.parts.emplace_back();  // holds the acts before the first pass
    for (const Script::Act& act : script_.acts()) {
      if (act.kind == Script::Act::Kind::part) begins(act.part);
      if (act.kind == Script::Act::Kind::work) works(act);
      if (act.kind == Script::Act::Kind::begin) calls(act.call);
      if (act.kind == Script::Act::Kind::wait) waits(act.call);
    }
    require(cost_.parts.back().part.kind == StepPart::Kind::rest, "the script of a step has no end");
    return std::move(cost_);
  }

 private:
  void keep(Script::Call call) {
    const Software& s = system_.software;
    double after = 0;
    if (is_copy(call)) {
      if (!options_.offload.to_host) call.group = "file";
      cost_.calls.push_back(call);
      cost_.after.push_back(0);
      return;
    }
    if (call.volume.sent < 0)
      usage_error("the time of a library's own algorithm is not known", fmt::format("a call of {} is native", call.group),
                  "choose an algorithm of ours: --algorithm ring");
    if (is_message(call) && s.hides_messages) {
      call.volume = {.sent = 0};
    } else if (call.scatters && s.scatters_by_all_reduce) {
      call.volume.sent *= 2;
      call.volume.host_crossing *= 2;
      call.volume.switch_crossing *= 2;
    } else if (is_message(call)) {
      after = s.message;
      const std::int64_t shards = layout_.shards();
      if (s.splits_messages && !layout_.sequence && shards > 1) {
        const double gathered =
            static_cast<double>(call.volume.vector) * static_cast<double>(shards - 1) / static_cast<double>(shards);
        after += gathered / system_.host.link + static_cast<double>(shards - 1) * system_.host.latency;
        call.volume.sent /= shards;
        call.volume.host_crossing /= shards;
        call.volume.switch_crossing /= shards;
      }
    }
    cost_.calls.push_back(call);
    cost_.after.push_back(after);
  }
  std::vector<StageCost::Act>& acts() { return cost_.parts.back().acts; }
  StageCost::Act& work() {
    if (acts().empty() || acts().back().kind != Kind::work) acts().emplace_back();
    return acts().back();
  }

  void begins(const StepPart& part) {
    cost_.parts.push_back({part, {}});
    if (part.kind == StepPart::Kind::rest) return;
    const Software& s = system_.software;
    const double blocks = static_cast<double>(options_.shape.layers) / static_cast<double>(pipeline_of(layout_).parts());
    const int parameters = options_.shape.llama() ? 6 : 12;  // in each block: matrices, biases and norms
    const bool backward = part.kind == StepPart::Kind::backward;
    double host = 0;
    if (part.kind == StepPart::Kind::forward) host = s.micro_batch / static_cast<double>(layout_.chunks);
    if (backward) host = s.parameter_hooks * parameters * blocks * s.launch;
    if (host > 0) work().host_seconds += host;
  }

  void add(const KernelTime& time) {
    work().time += time;
    work().host_seconds += time.launches * system_.software.launch;
  }
  void works(const Script::Act& act) {
    for (std::size_t i = act.first_kernel; i < act.last; ++i) add(time_of(script_.kernels()[i]));
  }
  // If optimizer states are in host memory, the host computes the update while the accelerator waits. All ranks of a host
  // share the host memory bandwidth.
  KernelTime time_of(const KernelWork& kernel) const {
    if (!updates_on_host() || kernel.work != Work::update || kernel.gradient) return kernels_.of(kernel);
    KernelTime time;
    time.seconds[static_cast<std::size_t>(Spent::update)] = kernel.bytes * system_.host.accelerators / system_.host.memory;
    return time;
  }

  bool updates_on_host() const { return options_.offload.optimizer && options_.offload.to_host; }

  bool is_width(const Script::Call& call) const { return !is_message(call) && !is_copy(call) && call.group == width_; }
  // Whether this is a tp call after which the accelerator waits immediately, as in most training programs.
  bool blocks(const Script::Call& call) const { return is_width(call) && !system_.software.overlaps_calls; }

  // Whether this is an update for which the program does not wait, and the accelerator computes it.
  bool is_update_here(const Script::Call& call) const {
    return call.copy == Script::Call::Copy::update && !updates_on_host();
  }

  void block_on(const Script::Call& call) {
    const Software& s = system_.software;
    work().calls += time_of_call(call, system_, 1).total() * (1 - s.hidden_calls) + s.call;
    work().host_seconds += 2 * s.launch;
  }

  void calls(int number) {
    const Script::Call& call = cost_.calls[static_cast<std::size_t>(number)];
    if (is_update_here(call)) {
      const auto bytes = static_cast<double>(call.volume.vector);
      return add(kernels_.of({.work = Work::update, .amount = bytes, .bytes = bytes}));
    }
    if (!blocks(call)) return acts().push_back({.kind = Kind::begin, .call = number});
    work().sent += call.volume.sent;
    // If a gather for a weight gradient starts while a different call is in flight, a matrix product hides the gather.
    if (in_flight_.empty()) block_on(call);
    in_flight_.insert(number);
  }
  void waits(int number) {
    const Script::Call& call = cost_.calls[static_cast<std::size_t>(number)];
    if (blocks(call)) return void(in_flight_.erase(number));
    if (ends_late(call) || is_update_here(call)) return;
    acts().push_back({.kind = Kind::wait, .call = number});
  }
  // Whether this call is a gather of updated values. Such a gather can end in the next step.
  bool ends_late(const Script::Call& call) const {
    return system_.software.gathers_ahead && cost_.parts.back().part.kind == StepPart::Kind::rest && !is_message(call) &&
           !is_copy(call) && layout_.zero > 0 && layout_.zero < 3 && updates_begun();
  }
  bool updates_begun() const {
    const auto updates = [](const StageCost::Act& act) {
      return act.time.seconds[static_cast<std::size_t>(Spent::update)] > 0;
    };
    // The first of these acts computes the gradient norm.
    return std::ranges::count_if(cost_.parts.back().acts, updates) > 1;
  }

  const TrainingOptions& options_;
  const Layout& layout_;
  const System& system_;
  const Script& script_;
  const std::string width_;  // the name of the group that divides the width: "tp"
  KernelTimes kernels_;
  StageCost cost_;
  std::set<int> in_flight_;
};

// Returns the number of micro-batches in the short step that represents the complete step. If stages have one chunk, the
// number is 3. Otherwise, it is the smallest multiple of the number of stages that is at least 3. The number never exceeds
// that of the complete step.
std::int64_t recorded_micro_batches(const TrainingOptions& options, const Layout& layout) {
  std::int64_t few = 3;
  if (layout.chunks > 1) few = round_up(few, layout.stages());
  return std::min(few, micro_batches_of(options, layout));
}

}  // namespace

const StageCost::Part& StageCost::of(const PipelineAction& action, std::int64_t micro_batches) const {
  std::int64_t recorded = 0;
  for (const Part& part : parts) recorded = std::max(recorded, part.part.micro_batch + 1);
  const std::int64_t from_end = micro_batches - 1 - action.micro_batch;
  const std::int64_t micro =
      from_end == 0 ? recorded - 1 : std::min(action.micro_batch, std::max<std::int64_t>(recorded - 2, 0));
  for (const Part& part : parts)
    if (part.part.kind == part_kind(action.kind) && part.part.micro_batch == micro && part.part.chunk == action.chunk)
      return part;
  misuse("a pass was not recorded", std::source_location::current());
}

double crossing_rate(const System& system, int on_host, int groups_on_host, bool is_message) {
  const NetworkLinks& net = system.network;
  require(net.adapters > 0, "a call crosses hosts, but the machine file has no network");
  const bool whole_host = on_host == system.host.accelerators;
  double rate = net.adapter * std::max(1.0, net.adapters * on_host / system.host.accelerators);
  if (net.group_adapters > 0 && on_host > 1 && !whole_host) rate = net.adapter * net.group_adapters / groups_on_host;
  if (is_message) return rate;
  if (system.software.call_adapters > 0) rate = std::min(rate, net.adapter * system.software.call_adapters);
  return rate * net.collective;
}

CallTime time_of_call(const Script::Call& call, const System& system, int groups_on_host) {
  const CallVolume& volume = call.volume;
  if (is_copy(call)) return {.moves = static_cast<double>(volume.vector) / copy_rate(call, system.host)};
  const double sent = static_cast<double>(volume.sent), crossing = static_cast<double>(volume.host_crossing);
  CallTime time{.latency = static_cast<double>(volume.messages) * system.host.latency, .moves = sent / system.host.link};
  if (crossing == 0) return time;
  time.latency += static_cast<double>(volume.messages_crossing) * (system.network.latency - system.host.latency);
  time.crossing = crossing;
  time.moves = std::max(time.moves, crossing / crossing_rate(system, volume.on_host, groups_on_host, is_message(call)));
  if (volume.switch_crossing == 0) return time;
  time.switch_crossing = static_cast<double>(volume.switch_crossing);
  time.moves = std::max(time.moves, time.switch_crossing / system.network.uplink());
  return time;
}

StageCost stage_cost(const StageRequest& request, const System& system, int rank) {
  PlanRequest brief = request.plan;
  const std::int64_t recorded = recorded_micro_batches(brief.options, brief.layout);
  brief.options = with_micro_batches(std::move(brief.options), brief.layout, recorded);
  const Script script = script_of(brief, rank, brief.options.offload.any());
  return Pricing(request, system, script).run();
}

}  // namespace chorale
