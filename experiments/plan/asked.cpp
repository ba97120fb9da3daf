#include "experiments/plan/asked.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "experiments/common/machine_named.hpp"
#include "experiments/common/shared_files.hpp"
#include "experiments/common/simulated.hpp"
#include "experiments/train/megatron_flags.hpp"
#include "parallel/context/context.hpp"
#include "parallel/prediction/prefetch.hpp"
#include "src/base/error.hpp"
#include "src/base/text.hpp"
#include "src/base/text_table.hpp"

namespace chorale::plan {

void AskedPlan::declare(Options& o) {
  options = &o;
  flags.declare(o);
  layouts.take_all();
  layouts.search_if(search);
  layouts.declare(o);
  flags.declare_parallel(o, layouts);
  flags.declare_offload(o);
  o.section("the plan");
  o.add("ranks", ranks, "number of ranks to plan for; 0: as the layout says, or one replica if it has no dp").range(0, 1e7);
  hosts.declare(o, "the ranks of each host, such as 2,2: plans for these hosts, and shows the bytes that cross them");
  o.add_bytes("memory-limit", "auto", memory_limit,
              "memory per rank, such as 80G; layouts that need more are marked; auto: no limit")
      .range(1, 1e15);
  o.add("longest-sequence", longest_sequence,
        "instead of the plan, the longest sequences that fit memory-limit, with and without cp and recomputation")
      .only_where("a memory limit and one layout", [this] {
        return !memory_limit ? "memory-limit is auto" : layouts.all() ? "layout is all" : "";
      });
  o.add("machine", machine,
        "machine whose file predicts times, by its name or file (docs/machine_file.md), instead of this one")
      .words("NAME|FILE")
      .suggest(shared_names("machines"));
  o.add("search", search,
        "instead of a plan, the fastest layouts: on a machine of accelerators, also schedules, micro-batches and "
        "recomputation")
      .only_where("ranks", [this] { return ranks == 0 ? "ranks is 0" : ""; });
  o.add("explain", explain,
        "why not this layout, such as z3 (FSDP): with --search, executes it even if it is not among the fastest, and puts "
        "it beside the fastest; two layouts: beside each other")
      .words("A|A,B")
      .only_where("search on a machine of accelerators", [this] {
        return !search ? "search is not given" : machine.empty() ? "no machine is given" : "";
      });
  o.add("timeline", timeline, "picture of the predicted step, on a machine of accelerators: .svg, .txt, or .json for Chrome")
      .words("FILE")
      .only_where("a machine and one layout", [this] {
        return machine.empty() ? "no machine is given" : search ? "search is given" : layouts.all() ? "layout is all" : "";
      });
  o.add("table", table, "instead of a plan, predictions for the rows of a published table (docs/planner.md)")
      .words("FILE.csv");
  o.add("assumptions", assumptions_file, "what tables do not say, instead of the file that comes with the program")
      .words("FILE.toml")
      .only_where("table", [this] { return table.empty() ? "no table is given" : ""; });
  const auto one_plan_in_text = [this] {
    return layouts.all()      ? "layout is all"
           : longest_sequence ? "longest-sequence is given"
           : format == "text" ? ""
                              : "format is not text";
  };
  o.add("train-tokens", whole.tokens, "tokens of the whole training, such as 300e9: its steps and flops are shown")
      .range(0, 1e18)
      .only_where("search, or the plan of one layout in text",
                  [this, one_plan_in_text] { return search ? "" : one_plan_in_text(); });
  o.add("sustained-flops", whole.sustained,
        "flops per second that each rank sustains, such as 35e12: the time of the whole training is shown")
      .range(0, 1e18)
      .only_where("train-tokens", [this] { return whole.tokens == 0 ? "train-tokens is 0" : ""; });
  snapshots.declare(o, [this] {
    return !table.empty()     ? "a table is given"
           : search           ? "search is given"
           : layouts.all()    ? "layout is all"
           : longest_sequence ? "longest-sequence is given"
                              : "";
  });
  o.add("rows", most_rows, "rows to show of the table of all layouts or of a search; 0: all. The default is for text")
      .range(0, 1e6)
      .only_where("layout all, or search", [this] { return search || layouts.all() ? "" : "the layout is not all"; });
  o.add("format", format, "format of the tables").one_of(TextTable::formats()).changes(Effect::output);
  o.add_words(train::megatron_flags());
}

void AskedPlan::settle() {
  Documents::named(flags.document_mask().documents);
  if (!machine.empty()) system = machine_named(machine).system;
  assume_type();
  if (system && hosts.given()) refuse_hosts(machine, *system);
  if (!timeline.empty() &&
      (!system || !(timeline.ends_with(".svg") || timeline.ends_with(".json") || timeline.ends_with(".txt"))))
    usage_error("the timeline cannot be drawn", fmt::format("--timeline {} --machine {}", timeline, machine),
                "name a machine of accelerators (docs/machine_file.md), and a file that ends with .svg, .txt or .json");
  hosts.resolve(ranks);
  if (hosts.given()) places.emplace(hosts.topology());
}

// On accelerators the default is a 16-bit type, because accelerators are built for 16-bit types, and some accelerators
// support matrix products only in 16-bit types.
void AskedPlan::assume_type() {
  if (options->origin("dtype") != "default") return;
  const auto has_bf16 = [](const ProductRate& rate) { return rate.type == std::string("bf16"); };
  const bool in_bf16 = system && std::ranges::any_of(system->accelerator.products, has_bf16);
  if (in_bf16) flags.take_type(DType::bf16);
  assumed.push_back(in_bf16 ? "bf16 (--dtype)" : "f32 (--dtype)");
}

bool AskedPlan::on_one_host(const Layout& layout) const {
  if (system) return std::max(ranks, layout.ranks()) <= system->host.accelerators;
  return !places || places->one_host();
}

TrainingOptions AskedPlan::options_on(const Layout& layout) const {
  return flags.on(layout, {.memory_limit = memory_limit.value_or(0), .on_accelerator = system.has_value()});
}

TrainingOptions AskedPlan::unplaced_options_on(const Layout& layout) const {
  TrainingOptions options = options_on(layout);
  if (!on_one_host(layout)) options.context = before_hosts_are_known(options.context, options.shape, layout);
  return options;
}

std::string AskedPlan::settle_prefetch(PlanRequest& request) const {
  if (request.options.replicas.prefetch_units || system) return "";
  const PrefetchChoice choice = fewest_units_ahead(request);
  request.options.replicas.prefetch_units = choice.units;
  return choice.in_words();
}

std::string AskedPlan::assumptions() const { return join(assumed, "; "); }

std::int64_t AskedPlan::rows(std::int64_t usual) const { return asks_for_rows() ? most_rows : in_text() ? usual : 0; }

}  // namespace chorale::plan
