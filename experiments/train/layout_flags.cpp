#include "experiments/train/layout_flags.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "collectives/backends/backends.hpp"
#include "collectives/choice/decision.hpp"
#include "experiments/common/advice.hpp"
#include "experiments/common/each.hpp"
#include "experiments/common/simulated.hpp"
#include "src/base/error.hpp"
#include "src/base/text.hpp"

namespace chorale::train {
namespace {

// The axes whose backend and algorithm can be chosen.
std::vector<std::string> axis_names() {
  std::vector<std::string> names = names_of_rows(all_axes());
  names.emplace_back("world");
  return names;
}

void require_known(const std::string& word, const std::string& part, const std::string& what,
                   const std::vector<std::string>& known) {
  if (std::count(known.begin(), known.end(), word)) return;
  const std::string near = nearest(word, known);
  usage_error(fmt::format("unknown {} \"{}\"", what, word), fmt::format("found in \"{}\"", part),
              (near.empty() ? "" : fmt::format("did you mean {}? ", near)) + "there are " + join(known, ", "));
}

std::vector<std::string> with_auto(std::vector<std::string> names) {
  names.insert(names.begin(), "auto");
  return names;
}

ByAxis by_axis(const std::vector<std::string>& parts, const std::string& what, const std::vector<std::string>& known,
               const std::string& otherwise) {
  ByAxis words;
  for (const std::string& part : parts) {
    const std::size_t equals = part.find('=');
    const std::string axis = equals == std::string::npos ? "" : part.substr(0, equals);
    if (equals != std::string::npos) require_known(axis, part, "axis", axis_names());
    const std::string word = equals == std::string::npos ? part : part.substr(equals + 1);
    require_known(word, part, what, known);
    if (!words.emplace(axis, word).second)
      usage_error(fmt::format("two values for {}", axis.empty() ? "all axes" : "the axis " + axis),
                  fmt::format("{} = {}", what, join(parts, ",")),
                  fmt::format("give one value, or one for each axis: --{} tp={},dp={}", what, word, known.front()));
  }
  words.emplace("", otherwise);
  return words;
}

}  // namespace

ByAxis backends_by_axis(const std::vector<std::string>& parts) {
  return by_axis(parts, "backend", with_auto(backend_names(connects_processes)), "auto");
}

ByAxis algorithms_by_axis(const std::vector<std::string>& parts) {
  return by_axis(parts, "algorithm", algorithm_names(), "auto");
}

AxisOrder order_of(const std::vector<std::string>& words) {
  return words == std::vector<std::string>{"auto"} ? AxisOrder() : all_axes().parse_order(join(words, ","), ',');
}

void LayoutFlags::declare(Options& o) {
  options_ = &o;
  const auto has_stages = has_more_than_one([](const Layout& l) { return l.stages(); }, "the layout has no pipeline");
  const auto pipeline = [this, has_stages] { return search_ && *search_ ? std::string() : has_stages(); };
  o.section("layout", Effect::speed);
  const std::string or_all = takes_all_ ? "; all: a table of every legal layout" : "";
  o.add("layout", word_,
        "how ranks share model and data, such as dp2.tp2.pp2.z1.sp; flags such as --tp override its parts" + or_all)
      .words("WORD")
      .part_of(Whole::layout);
  for (std::size_t row = 0; row < all_axes().size(); ++row) {
    const AxisRow& axis = all_axes()[row];
    if (axis.follows()) continue;
    Option& option = o.add(axis.name, sizes_[row], axis.flag).range(0, 1e6).part_of(Whole::layout);
    if (*axis.megatron) option.alias(axis.megatron);
  }
  o.add("zero", "auto", zero_,
        "ZeRO: 1 shards optimizer state over replicas, 2 also gradients, 3 also parameters; auto: from the layout")
      .one_of({"auto", "0", "1", "2", "3"})
      .alias("zero-stage")
      .part_of(Whole::layout);
  o.add("shard-size", shard_size_,
        "ranks among which ZeRO shards, of all replicas and their context ranks: sets dp and rep, but not their product; "
        "0: from the layout")
      .range(0, 1e6)
      .part_of(Whole::layout)
      .only_where("zero 1, 2 or 3", [this] { return all() || asked().zero > 0 ? "" : "the ZeRO stage is 0"; });
  o.add("hpz", hpz_,
        "ranks of a host that together keep a copy of all parameters for the backward pass, of all replicas and their "
        "context ranks; ZeRO-3 shards among all (ZeRO++); 0: from the layout")
      .range(0, 1e6)
      .part_of(Whole::layout)
      .only_where("zero 3", zero_3());
  o.add("use-distributed-optimizer", distributed_optimizer_, "the same as --zero 1").part_of(Whole::layout);
  o.add("sequence-parallel", sequence_,
        "shard LayerNorm and dropout activations along the sequence across TP ranks (sp in a layout)")
      .part_of(Whole::layout);
  o.add("schedule", schedule_, "pipeline schedule; auto: from the layout")
      .one_of(with_auto(schedule_names()))
      .part_of(Whole::layout)
      .only_where("a pipeline", pipeline);
  o.add("virtual-stages", chunks_, "model chunks per stage; 0: from the layout")
      .range(0, 1e6)
      .alias("num-virtual-stages-per-pipeline-rank")
      .part_of(Whole::layout)
      .only_where("a pipeline", pipeline);
  declare_order(o, order_);
  o.add("backend", backend_,
        std::string("transport of messages, for all axes or per axis: tp=shm,dp=ucx") +
            (takes_simulated_ ? "; simulated:NAME: one step in virtual time on a machine of docs/machine_file.md" : ""))
      .suggest(takes_simulated_ ? with_simulated(with_auto(backend_names(connects_processes)))
                                : with_auto(backend_names(connects_processes)));
  o.add("algorithm", algorithm_, "collective algorithm, for all axes or per axis: dp=ring,tp=direct")
      .suggest(algorithm_names());
}

Layout with_least_sizes(Layout layout) {
  for (std::int64_t& size : layout.sizes) size = std::max<std::int64_t>(size, 1);
  return layout;
}

Option& declare_order(Options& o, std::vector<std::string>& order) {
  return o
      .add(
          "order", order,
          "which axes lie inside which, the outermost first: pp,dp,tp; axes left out keep their places; auto: from the "
          "layout, or else pp,dp,tp, except that train and plan on several hosts take the order that sends the fewest bytes "
          "between them")
      .words("AXES")
      .part_of(Whole::layout)
      .suggest(with_auto(names_of_rows(all_axes())));
}

bool LayoutFlags::outranks(const std::string& flag) const {
  return options_->find(flag)->source >= options_->find("layout")->source;
}

bool LayoutFlags::allows(const Layout& layout, ListedIn list) const {
  for (std::size_t row = 0; row < all_axes().size(); ++row)
    if (sizes_[row] && layout.sizes[row] != sizes_[row]) return false;
  if (shard_size_ && (layout.zero == 0 || layout.zero_ranks() != shard_size_)) return false;
  if (hpz_ && (!layout.hpz || layout.zero_ranks() / layout.repeats() != hpz_)) return false;
  if ((zero_ && layout.zero != *zero_) || (distributed_optimizer_ && layout.zero == 0)) return false;
  if (sequence_ && !layout.sequence) return false;
  if (layout.stages() == 1) return true;
  if (chunks_ && layout.chunks != chunks_) return false;
  return schedule_ == "auto" ? layout.schedule->listed_in >= list : layout.schedule->name == schedule_;
}

LayoutWord LayoutFlags::word() const {
  if (word_ == "all" && !takes_all_)
    usage_error(
        "this command needs a single layout", "layout is all",
        fmt::format("{0} plan --layout all lists the legal layouts, {0} compare --layouts all runs them", program()));
  return read_layout_word(all() ? "" : word_);
}

Layout LayoutFlags::asked(const LayoutWord& word) const {
  Layout layout = word.layout;
  for (std::size_t row = 0; row < all_axes().size(); ++row)
    if (const char* const name = all_axes()[row].name; sizes_[row] && counts(name, word, name))
      layout.sizes[row] = sizes_[row];
  if (distributed_optimizer_) layout.zero = std::max(layout.zero, 1);
  if (zero_ && counts("zero", word, "z")) layout.zero = static_cast<int>(*zero_);
  if (distributed_optimizer_ && layout.zero == 0)
    usage_error("the ZeRO options contradict each other", "use-distributed-optimizer means ZeRO-1, but zero is 0",
                "give one of the two");
  layout.sequence |= sequence_;
  if (const AxisOrder order = order_of(order_); !order.empty() && (layout.order.empty() || outranks("order")))
    layout.order = order;
  const std::int64_t chunks = counts("virtual-stages", word, "v") ? chunks_ : 0;
  if (chunks) layout.chunks = chunks;
  if (schedule_ != "auto" && counts("schedule", word, "schedule")) {
    layout.schedule = find_pipeline_schedule(schedule_);
    if (chunks == 0 && layout.chunks == 1) layout.chunks = layout.schedule->least_chunks;
  } else if (chunks && !word.named.contains("schedule")) {
    layout.schedule = &usual_schedule(chunks);
  }
  return layout;
}

Layout LayoutFlags::with_shards(Layout layout, const LayoutWord& word) const {
  if (shard_size_ && (hpz_ || layout.hpz))
    usage_error("shard-size and hpz contradict each other",
                fmt::format("shard-size is {}, but under hpz, ZeRO shards among all replicas", shard_size_),
                "give one of the two");
  const char* const flag = hpz_ ? "hpz" : "shard-size";
  const std::int64_t size = hpz_ ? hpz_ : shard_size_;
  const std::vector<std::string> repeating = all_axes().names_of(all_axes().repeating());
  const auto is_overridden = [&](const std::string& axis) { return !counts(flag, word, axis); };
  if (size == 0 || std::ranges::any_of(repeating, is_overridden)) return layout;
  layout = with_zero_ranks(std::move(layout), size, flag);
  if (hpz_) layout.hpz = true;
  for (std::size_t row = 0; row < all_axes().size(); ++row)
    if (all_axes()[row].repeats && sizes_[row] && layout.sizes[row] != sizes_[row])
      usage_error(fmt::format("{} and {} contradict each other", flag, all_axes()[row].name),
                  fmt::format("{} {} makes the layout {}, but {} is {}", flag, size, to_string(layout), all_axes()[row].name,
                              sizes_[row]),
                  "give one of the two");
  return layout;
}

std::string LayoutFlags::simulated() const {
  return takes_simulated_ && backend_.size() == 1 ? simulated_machine(backend_[0]) : "";
}

Layout LayoutFlags::smallest() const { return with_least_sizes(asked()); }

std::int64_t LayoutFlags::ranks_of(const Launch& launch) const {
  return launch.launcher.empty() ? smallest().ranks() : launch.size;
}

void LayoutFlags::require_launched(std::int64_t world, const char* command) const {
  const Layout layout = smallest();
  if (world > 1 || layout.ranks() == 1) return;
  const std::string words = options_->origin("layout") == "command line" ? "--layout " + word_ + " …" : "…";
  usage_error(fmt::format("the layout needs {} ranks, but this is one process", layout.ranks()),
              fmt::format("{} has {} ranks, and the program was started without mpirun", to_string(layout), layout.ranks()),
              "start it as: " + command_on(layout.ranks(), fmt::format("{} {}", command, words)));
}

Layout LayoutFlags::layout(std::int64_t world) const {
  const LayoutWord read = word();
  return with_shards(inferred(asked(read), world), read);
}

ParallelChoice LayoutFlags::choice(std::int64_t world) const { return {layout(world), backends(), algorithms()}; }

ParallelChoice LayoutFlags::choice(const LayoutLimits& limits) const {
  const LayoutWord read = word();
  return {with_shards(inferred(asked(read), limits), read), backends(), algorithms()};
}

}  // namespace chorale::train
