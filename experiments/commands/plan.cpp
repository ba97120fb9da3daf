// `chorale plan`: predicts the memory and traffic of a training step on each pipeline stage, without running it, for any
// number of ranks. The real code runs on phantom tensors, which have shapes but no bytes.
//
//   build/chorale plan --preset gpt3-175b --layout dp1                       2.5 TiB of model states
//   build/chorale plan --preset gpt3-175b --train-tokens 300e9 --sustained-flops 35e12      288 years on one rank
//   build/chorale plan --preset gpt3-175b --layout dp64.tp8.pp16.z1.sp       8192 ranks, one line per stage
//   build/chorale plan --preset nano --ranks 4 --layout all                  which layout? one line per legal layout
//   build/chorale plan --preset nano --hosts 2,2 --layout dp2.tp2            and which bytes cross hosts?
//   build/chorale plan --preset nano-moe --layout dp4.ep4 --routing zipf     and if a few experts get most tokens?
//   build/chorale plan --preset gpt2 --layout dp1.cp8 --memory-limit 80G --longest-sequence
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/common/command.hpp"
#include "experiments/common/hosts_option.hpp"
#include "experiments/common/machine_named.hpp"
#include "experiments/common/shared_files.hpp"
#include "experiments/common/simulated.hpp"
#include "experiments/plan/assumptions.hpp"
#include "experiments/plan/candidates.hpp"
#include "experiments/plan/hosts.hpp"
#include "experiments/plan/longest_sequence.hpp"
#include "experiments/plan/one_layout.hpp"
#include "experiments/plan/published.hpp"
#include "experiments/plan/search.hpp"
#include "experiments/plan/whole_training.hpp"
#include "experiments/plan/wording.hpp"
#include "experiments/train/ds_config.hpp"
#include "experiments/train/flags.hpp"
#include "experiments/train/layout_flags.hpp"
#include "experiments/train/megatron_flags.hpp"
#include "parallel/context/context.hpp"
#include "parallel/forecast/prefetch.hpp"
#include "src/base/error.hpp"
#include "src/base/host.hpp"
#include "src/base/progress.hpp"
#include "src/base/screen.hpp"
#include "src/base/text.hpp"

namespace chorale {
namespace {

class PlanCommand final : public Command {
 public:
  std::vector<Preset> presets() const override { return train::presets(); }
  std::vector<ForeignConfig> foreign() const override { return {{"ds-config", train::read_ds_config}}; }

  void declare(Options& o) override {
    options_ = &o;
    flags_.declare(o);
    layout_flags_.take_all();
    layout_flags_.declare(o);
    flags_.declare_parallel(o, layout_flags_);
    flags_.declare_offload(o);
    o.section("the plan");
    o.add("ranks", ranks_, "number of ranks to plan for; 0: as the layout says, or one replica if it has no dp")
        .range(0, 1e7);
    hosts_.declare(o, "the ranks of each host, such as 2,2: plans for these hosts, and shows the bytes that cross them");
    o.add_bytes("memory-limit", "auto", memory_limit_,
                "memory per rank, such as 80G; layouts that need more are marked; auto: no limit")
        .range(1, 1e15);
    o.add("longest-sequence", longest_sequence_,
          "instead of the plan, the longest sequences that fit memory-limit, with and without cp and recomputation")
        .only_where("a memory limit and one layout", [this] {
          return !memory_limit_ ? "memory-limit is auto" : layout_flags_.all() ? "layout is all" : "";
        });
    o.add("machine", machine_,
          "machine whose file predicts times, by its name or file (docs/machines.md), instead of this one")
        .words("NAME|FILE")
        .suggest(shared_names("machines"));
    o.add("search", search_,
          "instead of a plan, the fastest layouts: on a machine of accelerators, also schedules, micro-batches and "
          "recomputation")
        .only_where("ranks", [this] { return ranks_ == 0 ? "ranks is 0" : ""; });
    o.add("explain", explain_,
          "why not this layout, such as z3 (FSDP): with --search, executes it even if it is not among the fastest, and puts "
          "it beside the fastest; two layouts: beside each other")
        .words("A|A,B")
        .only_where("search on a machine of accelerators", [this] {
          return !search_ ? "search is not given" : machine_.empty() ? "no machine is given" : "";
        });
    o.add("timeline", timeline_,
          "picture of the predicted step, on a machine of accelerators: .svg, .txt, or .json for Chrome")
        .words("FILE")
        .only_where("a machine and one layout", [this] {
          return machine_.empty()      ? "no machine is given"
                 : search_             ? "search is given"
                 : layout_flags_.all() ? "layout is all"
                                       : "";
        });
    o.add("table", table_.table, "instead of a plan, predictions for the rows of a published table (docs/planner.md)")
        .words("FILE.csv");
    o.add("assumptions", table_.assumptions, "what tables do not say, instead of the file that comes with the program")
        .words("FILE.toml")
        .only_where("table", [this] { return table_.table.empty() ? "no table is given" : ""; });
    const auto one_plan_in_text = [this] {
      return layout_flags_.all() ? "layout is all"
             : longest_sequence_ ? "longest-sequence is given"
             : format_ == "text" ? ""
                                 : "format is not text";
    };
    o.add("train-tokens", whole_.tokens, "tokens of the whole training, such as 300e9: its steps and flops are shown")
        .range(0, 1e18)
        .only_where("search, or the plan of one layout in text",
                    [this, one_plan_in_text] { return search_ ? "" : one_plan_in_text(); });
    o.add("sustained-flops", whole_.sustained,
          "flops per second that each rank sustains, such as 35e12: the time of the whole training is shown")
        .range(0, 1e18)
        .only_where("train-tokens", [this] { return whole_.tokens == 0 ? "train-tokens is 0" : ""; });
    o.add("rows", rows_, "rows to show of the table of all layouts or of a search; 0: all. The default is for text")
        .range(0, 1e6)
        .only_where("layout all, or search",
                    [this] { return search_ || layout_flags_.all() ? "" : "the layout is not all"; });
    o.add("format", format_, "format of the tables").one_of(TextTable::formats());
    o.add_words(train::megatron_flags());
  }

  void check(const Launch&) override {
    if (!table_.table.empty()) return;
    Documents::named(flags_.document_mask().documents);
    if (!machine_.empty()) system_ = machine_named(machine_).system;
    assume_type();
    if (system_ && hosts_.given()) refuse_hosts(machine_, *system_);
    if (!timeline_.empty() &&
        (!system_ || !(timeline_.ends_with(".svg") || timeline_.ends_with(".json") || timeline_.ends_with(".txt"))))
      usage_error("the timeline cannot be drawn", fmt::format("--timeline {} --machine {}", timeline_, machine_),
                  "name a machine of accelerators (docs/machines.md), and a file that ends with .svg, .txt or .json");
    hosts_.resolve(ranks_);
    if (hosts_.given()) places_.emplace(hosts_.topology());
    if (search_ && system_) return check_search();
    if (search_ || layout_flags_.all()) return check_all();
    Layout least = layout_flags_.asked();  // the ranks if neither dp nor --ranks is given
    for (std::int64_t& size : least.sizes) size = std::max<std::int64_t>(size, 1);
    const std::int64_t world = ranks_ ? ranks_ : least.ranks();
    const train::ParallelChoice choice = layout_flags_.choice(flags_.limits(world));
    request_ = {options_on(choice.layout), choice.layout, choice.backends, choice.algorithms};
    LayoutLimits limits = flags_.limits(request_.options, world);
    limits.one_host = on_one_host();
    if (longest_sequence_) limits.shape.sequence = 1 << 20;  // the search finds lengths that fit
    require_fits(request_.layout, limits);
    assume();
    if (system_) {
      require_predictable({.plan = request_, .system = *system_});
      if (!on_one_host()) request_.hosts = hosts_of(*system_, request_.layout.ranks());
    }
    if (places_) {
      why_order_ = places_->place(request_);
      places_->require_suited(request_);
    }
    settle_prefetch(request_);
  }

  int run(Session& session) override {
    for (const std::string& line : session.options.notes()) fmt::print(stderr, "{}\n", line);
    warn();
    if (!table_.table.empty()) {
      table_.machine = machine_, table_.format = format_;
      return plan::print_published(table_, session), 0;
    }
    if (search_ && system_) return find_fastest(session);
    if (search_ || layout_flags_.all()) return choose(session);
    if (longest_sequence_) return find_longest();
    const std::optional<Shortage> shortage = this->shortage();
    fmt::print("{}", plan::print_layout({.request = request_,
                                         .system = system_,
                                         .hosts = places_ ? &*places_ : nullptr,
                                         .whole = whole_,
                                         .timeline = timeline_,
                                         .choices = {why_order_, why_prefetch_},
                                         .assumed = join(assumed_, "; "),
                                         .limit = memory_limit_ ? static_cast<double>(*memory_limit_)
                                                  : system_     ? system_->accelerator.memory
                                                                : 0,
                                         .shortage = shortage},
                                        format_));
    return fits_or_not(!shortage);
  }

 private:
  // Scripts read from the exit code whether a layout fits.
  static int fits_or_not(bool fits) { return static_cast<int>(fits ? Exit::ok : Exit::check); }

  int find_longest() {
    const TrainingOptions& o = request_.options;
    const std::int64_t micro = std::max<std::int64_t>(flags_.limits(1).micro_batch, 1);
    if (format_ == "text")
      fmt::print("{}", on_screen(fmt::format(
                           "{} ranks, {:.2f} million parameters in {}, micro-batches of {}; a rank may hold {}\n\n",
                           request_.layout.ranks(), static_cast<double>(o.shape.parameters()) / 1e6, name_of(o.compute),
                           micro, plan::words_for_bytes(static_cast<double>(*memory_limit_)))));
    fmt::print("{}", plan::longest_sequences(
                         request_.layout,
                         [&](const Layout& layout) {
                           TrainingOptions options = unplaced_options_on(layout);
                           options.batch.micro = micro;
                           return options;
                         },
                         format_));
    return 0;
  }

  TrainingOptions options_on(const Layout& layout) const {
    return flags_.on(layout, {.memory_limit = memory_limit_.value_or(0), .on_accelerator = system_.has_value()});
  }

  // Without --memory-limit, a rank may hold what the machine's accelerator has.
  std::optional<Shortage> shortage() const {
    const bool by_machine = system_ && !memory_limit_;
    const auto options_of = [&](const Layout& layout) {
      TrainingOptions options = unplaced_options_on(layout);
      if (by_machine) options.memory.limit = static_cast<std::int64_t>(system_->accelerator.memory);
      return options;
    };
    return shortage_of(request_.layout, options_of, by_machine ? system_->accelerator.name + " has" : "the limit is");
  }

  // For plans that do not say which ranks share a host.
  TrainingOptions unplaced_options_on(const Layout& layout) const {
    TrainingOptions options = options_on(layout);
    if (!on_one_host()) options.context = before_hosts_are_known(options.context, options.shape, layout);
    return options;
  }

  void check_search() {
    request_ = {options_on(Layout{}), Layout{}, layout_flags_.backends(), layout_flags_.algorithms()};
    assume();
    require_predictable({.plan = request_, .system = *system_});
    LayoutLimits limits = flags_.limits(ranks_);
    limits.one_host = on_one_host();
    if (explain_.size() > 2)
      usage_error("--explain puts two layouts beside each other",
                  fmt::format("{} are named: {}", explain_.size(), join(explain_, ",")),
                  "name one, which is put beside the fastest, or two: --explain dp8.tp8,z3");
    for (const std::string& word : explain_) {
      explained_.push_back(inferred(parse_layout(word, ranks_), limits));
      require_fits(explained_.back(), limits);
    }
  }

  int find_fastest(Session& session) {
    const auto rows = static_cast<std::size_t>(this->rows(24));
    const bool asks_for_rows = options_->origin("rows") != "default";
    const plan::SearchRequest request{
        .step = {.plan = request_, .system = *system_},
        .ranks = ranks_,
        .memory = memory_limit_ ? static_cast<double>(*memory_limit_) : 0.95 * system_->accelerator.memory,
        .capacity = memory_limit_ ? static_cast<double>(*memory_limit_) : system_->accelerator.memory,
        .micro_batch = flags_.limits(1).micro_batch,
        .whole = whole_,
        .wanted = [this](const Layout& layout) { return layout_flags_.allows(layout); },
        .executed = std::max<std::size_t>(12, asks_for_rows ? rows : 0),
        .rows = rows,
        .explained = explained_,
        .assumed = join(assumed_, "; ")};
    fmt::print("{}", plan::print_search(request, format_, session));
    return 0;
  }

  void check_all() {
    if (ranks_ == 0)
      usage_error("--layout all needs a number of ranks", "layout is all, ranks is 0",
                  "add --ranks: --ranks 8 --layout all");
    request_.backends = layout_flags_.backends(), request_.algorithms = layout_flags_.algorithms();
    LayoutLimits limits = flags_.limits(ranks_);
    limits.one_host = on_one_host();
    layouts_ = plan::legal_layouts(
        limits, [this](const Layout& layout) { return options_on(layout); },
        [this](const Layout& layout) { return layout_flags_.allows(layout); });
    for (Layout& layout : layouts_) layout.order = layout_flags_.asked().order;
    if (layouts_.empty())
      usage_error("no layout is legal",
                  fmt::format("{} ranks, this model and batch, and the flags given for parts of a layout", ranks_),
                  "give fewer of --dp, --tp, --pp, --zero and --schedule, or another number of ranks");
    assume();
  }

  std::vector<plan::Candidate> weigh_all(Session& session) {
    std::vector<plan::Candidate> candidates;
    Progress progress("plan", static_cast<std::int64_t>(layouts_.size()), session.clock,
                      Progress::screen_at(session.log_level));
    for (const Layout& layout : layouts_) {
      progress.update(static_cast<std::int64_t>(candidates.size()), to_string(layout));
      request_.layout = layout, request_.options = options_on(layout);
      PlanRequest request = request_;
      if (places_) places_->place(request);
      settle_prefetch(request);
      if (!places_ || places_->suit(request)) candidates.push_back(plan::weigh(request));
    }
    if (candidates.empty())
      usage_error("the hosts suit no legal layout", fmt::format("{} layouts are legal on {} ranks", layouts_.size(), ranks_),
                  "change --hosts, --backend or --context-scheme");
    return candidates;
  }
  bool on_one_host() const {
    if (system_) return std::max(ranks_, request_.layout.ranks()) <= system_->host.accelerators;
    return !places_ || places_->one_host();
  }

  // The rows to show: `usual` in text and all for programs, unless --rows says otherwise.
  std::int64_t rows(std::int64_t usual) const {
    return options_->origin("rows") != "default" ? rows_ : format_ == "text" ? usual : 0;
  }

  double error_of_predictions() const {
    if (system_) return plan::planner_error;
    double most = 0;  // of this type
    for (const ComputeRates& rates : request_.selector->machine().computes)
      if (rates.type == name_of(request_.options.compute)) most = std::max(most, std::expm1(rates.error));
    return most;
  }

  int choose(Session& session) {
    const std::vector<plan::Candidate> candidates = weigh_all(session);
    const std::size_t unsuited = layouts_.size() - candidates.size();
    const plan::Choices choices = plan::in_order(candidates, memory_limit_.value_or(0));
    const TrainingOptions& o = request_.options;
    if (format_ == "text")
      fmt::print(
          "{}",
          on_screen(fmt::format(
              "{} ranks: {} legal layouts{}; {:.2f} million parameters{} in {}, {} sequences of {} tokens per step{}\n\n",
              ranks_, layouts_.size(), unsuited ? fmt::format(", {} of which do not suit the hosts", unsuited) : "",
              static_cast<double>(o.shape.parameters()) / 1e6, train::words_for_active(o.shape), name_of(o.compute),
              o.batch.global, o.shape.sequence,
              memory_limit_ ? "; a rank may hold " + plan::words_for_bytes(static_cast<double>(*memory_limit_)) : "")));
    fmt::print("{}", plan::table_of(choices, format_, rows(24), join(assumed_, "; "), error_of_predictions()));
    return fits_or_not(std::ranges::any_of(choices.rows, &plan::Candidate::fits));
  }

  // Accelerators are made for 16 bits, and some multiply nothing else.
  void assume_type() {
    if (options_->origin("dtype") != "default") return;
    const auto has_bf16 = [](const ProductRate& rate) { return rate.type == std::string("bf16"); };
    const bool in_bf16 = system_ && std::ranges::any_of(system_->accelerator.products, has_bf16);
    if (in_bf16) flags_.take_type(DType::bf16);
    assumed_.push_back(in_bf16 ? "bf16 (--dtype)" : "f32 (--dtype)");
  }

  void warn() const {
    if (!system_ || !memory_limit_ || static_cast<double>(*memory_limit_) <= system_->accelerator.memory) return;
    fmt::print(stderr, "warning: --memory-limit is {}, but {} has {}, which is {:g} GB\n",
               plan::words_for_bytes(static_cast<double>(*memory_limit_)), system_->accelerator.name,
               plan::words_for_bytes(system_->accelerator.memory), system_->accelerator.memory / 1e9);
  }

  // Replaces "auto" for --prefetch-units. On accelerators a run takes one unit, because nothing there predicts its time.
  void settle_prefetch(PlanRequest& request) {
    if (request.options.replicas.prefetch_units || system_) return;
    const PrefetchChoice choice = fewest_units_ahead(request);
    request.options.replicas.prefetch_units = choice.units;
    why_prefetch_ = choice.in_words();
  }

  void assume() {
    const plan::Place place{.machine = machine_,
                            .has_accelerators = system_.has_value(),
                            .hosts = places_ ? &*places_ : nullptr,
                            .ranks = std::max(ranks_, request_.layout.ranks())};
    for (std::string& words : plan::assume(request_, place)) assumed_.push_back(std::move(words));
  }

  const Options* options_ = nullptr;  // which knows what was given
  train::Flags flags_;
  train::LayoutFlags layout_flags_;
  HostsOption hosts_;
  std::optional<plan::Hosts> places_;  // if --hosts is given
  std::int64_t ranks_ = 0, rows_ = 24;
  std::optional<std::int64_t> memory_limit_;
  bool longest_sequence_ = false;
  plan::WholeTraining whole_;
  std::vector<Layout> layouts_;  // for --layout all
  std::string format_ = "text", machine_;
  std::string timeline_;
  std::vector<std::string> explain_;
  std::vector<Layout> explained_;
  bool search_ = false;
  std::optional<System> system_;  // of --machine, if it has accelerators
  plan::TableRequest table_;
  PlanRequest request_;
  std::string why_order_, why_prefetch_;
  std::vector<std::string> assumed_;
};

}  // namespace

std::unique_ptr<Command> make_plan() { return std::make_unique<PlanCommand>(); }

}  // namespace chorale
