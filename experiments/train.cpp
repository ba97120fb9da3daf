// `chorale train`: trains a transformer and records every step.
//
//   build/chorale train --preset nano --dtype bf16 --train-iters 600          on synthetic data, whose best loss is known
//   build/chorale train --data data/english.bin --save-interval 100           your own text
//   build/chorale train --load runs/latest --train-iters 1200                 resumes a run, bit for bit
//   mpirun -n 8 build/chorale train --layout dp2.tp2.pp2.z1.sp                on eight ranks; any layout resumes any run
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "experiments/kept_tokenizer.hpp"
#include "experiments/machine_named.hpp"
#include "experiments/machine_watch.hpp"
#include "experiments/report/scale.hpp"
#include "experiments/same_hosts.hpp"
#include "experiments/train/accounting.hpp"
#include "experiments/train/announcement.hpp"
#include "experiments/train/attention_balance.hpp"
#include "experiments/train/dataset.hpp"
#include "experiments/train/ds_config.hpp"
#include "experiments/train/flags.hpp"
#include "experiments/train/forecast.hpp"
#include "experiments/train/gantt.hpp"
#include "experiments/train/megatron_flags.hpp"
#include "experiments/train/memory_limit.hpp"
#include "experiments/train/offload_flags.hpp"
#include "experiments/train/product_peak.hpp"
#include "experiments/train/records.hpp"
#include "experiments/train/simulated.hpp"
#include "experiments/train/team.hpp"
#include "experiments/train/trace.hpp"
#include "parallel/assemble.hpp"
#include "parallel/context/context.hpp"
#include "parallel/forecast/prefetch.hpp"
#include "parallel/plan.hpp"
#include "parallel/stage.hpp"
#include "parallel/state/checkpoint.hpp"
#include "parallel/state/resume.hpp"
#include "parallel/state/stored_weights.hpp"
#include "src/base/host.hpp"
#include "src/base/launch.hpp"
#include "src/base/progress.hpp"
#include "src/base/signals.hpp"
#include "src/base/text.hpp"
#include "src/record/run_folder.hpp"

namespace chorale {
namespace {

class Train final : public Command {
 public:
  std::vector<Preset> presets() const override { return train::presets(); }
  std::vector<ForeignConfig> foreign() const override {
    return {{"ds-config", train::read_ds_config},
            {"load", train::read_checkpoint_shape, true},
            {"load-hf", train::read_hugging_face_shape, true}};
  }

  void declare(Options& o) override {
    flags_.declare(o);
    layout_flags_.take_simulated();
    layout_flags_.declare(o);
    memory_.declare(o);
    device_.declare(o);
    offload_.declare(o);
    o.section("data and records");
    o.add("data", data_, "a token file (made by chorale data tokenize), or synthetic: the embedded language").words("FILE");
    o.add("tokenizer", tokenizer_, "tokenizer of the data; the run keeps a copy for generate and export")
        .words("bytes|FILE|DIR")
        .only_where("a file of tokens", [this] { return data_ == "synthetic" ? "synthetic data is not text" : ""; });
    o.add("run-dir", run_dir_, "create the run's folder in this folder").words("DIR");
    o.add("save-interval", save_interval_, "steps between checkpoints; 0: only at the end")
        .range(0, 1e9)
        .only_with("no-save", {"false"});
    o.add("no-save", no_save_, "make no checkpoints");
    o.add("load", load_, "resume from a run, its checkpoints or one checkpoint; they set the model shape")
        .words("DIR")
        .instead_of("load-hf");
    o.add("load-hf", load_hf_, "start from the weights and the shape in a Hugging Face model folder")
        .words("DIR")
        .instead_of("load");
    o.add("eval-interval", eval_interval_, "steps between evaluations; 0: only at the end").range(0, 1e9);
    o.add("eval-samples", eval_samples_, "held-out samples per evaluation").range(1, 1e7);
    o.add("log-interval", log_interval_, "steps between log lines, if there is no terminal").range(1, 1e9);
    peak_.declare(o);
    o.add("trace-steps", trace_, "trace what every rank does in these steps, for a trace viewer: 10:13, or 10")
        .words("FIRST:LAST");
    o.add_words(train::megatron_flags());
  }

  void check(const Launch& launch) override {
    one_host_ = launch.one_host();
    trace_steps_ = train::trace_steps(trace_);
    require_writable(run_dir_);
    device_.check();
    if (const std::string machine = layout_flags_.simulated(); !machine.empty()) {
      if (launch.size > 1 || device_.asked() || data_ != "synthetic" || trace_steps_ ||
          !(tokenizer_ + load_ + load_hf_).empty())
        train::refuse_simulated(machine, launch.size);
      offload_.compute_on_device(machine_named(machine).system.has_value());
      return void(simulated_.emplace(flags_, layout_flags_, [&](const Layout& layout) { return options_on(layout); }));
    }
    offload_.compute_on_device(device_.asked());
    if (!load_hf_.empty()) flags_.shape_options().require_own_shape(shape_of_folder(load_hf_), load_hf_);
    if (!load_.empty())
      if (const auto model = shape_of_checkpoint(load_)) flags_.shape_options().require_shape(*model, load_);
    // Errors in the options end the program here, before MPI starts.
    const Layout layout = layout_flags_.choice(flags_.limits(launch.size)).layout;
    const TrainingOptions options = options_on(layout);
    require_place(layout, launch.launcher.empty() ? layout.ranks() : launch.size);
    chorale::check(options, layout);
    train::Dataset(data_, options.shape, options.seed, flags_.document_mask());
    if (!tokenizer_.empty()) require_tokenizer(tokenizer_, options.shape.vocabulary);
    const std::int64_t ranks_here = one_host_ ? layout.ranks() : std::max(1, launch.on_host);
    if (const std::string warning = offload_.check(options, layout, ranks_here); !warning.empty() && launch.rank == 0)
      fmt::print(stderr, "warning: {}\n", warning);
    signals_.emplace();
  }

  // If other programs use the GPU, an allocation can fail although the plan fits. The error then recommends layouts that
  // fit into the memory that is left.
  int run(Session& session) override try {
    if (simulated_) return simulated_->record(session, run_dir_), 0;
    signals_->tell(session.runtime->flight());
    return train(session);
  } catch (const MemoryRefused& refused) {
    const int world = session.runtime->size();
    const Layout layout = layout_flags_.choice(flags_.limits(world)).layout;
    const OptionsOf options_of = options_within(refused.room_bytes());
    throw refused.with_fix(how_to_fit(layout, flags_.limits(options_on(layout), world),
                                      [&](const Layout& other) { return has_room(other, options_of); }));
  }

 private:
  int train(Session& session) {
    require_same_files(*session.runtime, {data_, tokenizer_, load_hf_});
    const auto ranks = gather_rank_facts(*session.runtime, session.clock);
    const int threads = threads_of_a_rank(*session.runtime, ranks);
    const int world = session.runtime->size();
    const train::ParallelChoice asked = layout_flags_.choice(flags_.limits(world));
    if (!device_.asked()) memory_.settle(*session.runtime);
    TrainingOptions options = flags_.training(threads, asked.layout);
    layout_flags_.complete(options);
    memory_.complete(options);
    offload_.complete(options);
    require_place(asked.layout, world);
    const train::Dataset data(data_, options.shape, options.seed, flags_.document_mask());
    const auto [choice, why_order] = train::placed(asked, options, topology_of(*session.runtime));

    train::Team team(choice, device_, session);
    if (device_.memory() &&
        !memory_.lifted())  // backends and kernels need memory too; if that fails, the allocation itself reports it
      require_room(choice.layout, flags_.limits(options, world), options_within(device_.room_bytes()),
                   "its share of the GPU's free memory is");
    device_.complete(options);
    Mesh mesh = team.mesh();
    const std::string why_prefetch = settle_prefetch(options, team, mesh.world());
    const std::int64_t resident_before = team.spare_memory_of(options, session.runtime->rank());
    Training training(options, std::move(mesh), team.memory(), session.clock);
    Log log({.level = session.runtime->rank() == 0 ? session.log_level : "off"});
    if (!load_hf_.empty()) {
      HostMemory host;
      Ledger ledger;
      Allocator memory(host, ledger);
      StoredWeights(load_hf_, memory, log).read(weights_of(training.optimizer()), {options.threads});
      training.publish();
    }
    if (!load_.empty()) {  // before this run gets a folder, to which runs/latest then points
      const Checkpoint checkpoint = Checkpoint::open(load_, log, peers_of(training.mesh()));
      resume(training, checkpoint);
      if (Flight* const flight = session.runtime->flight()) flight->saved(checkpoint.path().string());
      require_steps_left(checkpoint);
    }

    const std::string tokenizer = !tokenizer_.empty() ? tokenizer_ : tokenizer_beside(load_hf_.empty() ? load_ : load_hf_);
    RunRecord run = open_run_record(run_dir_, session, ranks);
    if (run.recorder && !tokenizer.empty()) keep_tokenizer(tokenizer, run.folder / "tokenizer", options.shape.sequence);
    if (run.recorder) train::announce(run, team, training, data, flags_.steps());
    if (run.recorder && device_.memory()) run.log.info("on {}", team.about_device());
    if (run.recorder && !why_order.empty()) run.log.info("{}", why_order);
    if (run.recorder && !why_prefetch.empty()) run.log.info("{}", why_prefetch);
    if (const Option& backend = *session.options.find("backend");
        run.recorder && choice.layout.ranks() == 1 && backend.text != backend.initial)
      run.log.warn("backend {} has no effect: one rank sends no messages", backend.text);
    MachineWatch watch(session);
    watch.warn(run.log);
    peak_.find(session, ranks, training.options(), device_);
    if (run.recorder) run.log.info("matrix products reach {}", note_peak(run));
    if (run.recorder && !peak_.file_trouble().empty())
      run.log.warn("this peak is not kept, so the next run measures it again: {}", peak_.file_trouble());
    if (run.recorder) train::record_forecast(run, team.plans(training.options()));
    std::optional<train::Records> records;
    if (run.recorder) records.emplace(*run.recorder, training.options().shape, log_interval_);
    train::Accounting accounting(run, training, team.plans(training.options()), eval_samples(data), resident_before);
    if (trace_steps_) training.account().trace().record(trace_steps_.first, trace_steps_.last, train::trace_room(world));
    const std::string status = loop(session, run, training, data, records, accounting);
    session.runtime->now("shutdown");
    if (choice.layout.stages() > 1 && !training.account().events().empty()) {
      const train::MeasuredPipeline pipeline = train::measure_pipeline(training, ranks);
      if (run.recorder) train::report_pipeline(run, pipeline, session.run_name.empty());
    }
    if (trace_steps_) train::write_trace(run, training, trace_steps_, *session.runtime, ranks);
    train::report_attention_balance(run, training);
    if (const std::string free = records ? records->most_fragmented() : ""; !free.empty())
      run.log.info("free memory after the last step, where it is most fragmented: {}", free);
    const bool as_planned = accounting.settle(run, training);
    const std::vector<OtherWork> others = watch.finish(run.log);
    if (run.recorder) {
      write_other_work(*run.recorder, others);
      run.recorder->finish(as_planned ? status : "failed");
      run.log.info("recorded in {}", run.recorder->file().string());
    }
    return static_cast<int>(as_planned ? Exit::ok : Exit::check);
  }

  // Replaces "auto" for --prefetch-units by the choice of rank 0. Returns a line for the user on rank 0, or "".
  std::string settle_prefetch(TrainingOptions& options, const train::Team& team, Axis& world) const {
    if (!layout_flags_.leaves_prefetch_open()) return "";
    const PrefetchChoice choice = world.rank() == 0 ? fewest_units_ahead(team.plans(options)) : PrefetchChoice{};
    options.prefetch_units = exchange(world, choice.units)[0];
    return choice.in_words();
  }

  void require_steps_left(const Checkpoint& checkpoint) const {
    const std::int64_t step = checkpoint.metadata().step;
    if (step < flags_.steps()) return;
    usage_error("no step is left to train",
                fmt::format("{} is at step {}, but --train-iters is {}", checkpoint.path().string(), step, flags_.steps()),
                fmt::format("train longer with --train-iters {}, or resume from an earlier checkpoint", 2 * step));
  }

  TrainingOptions options_on(const Layout& layout) const {
    TrainingOptions options = flags_.training(1, layout);
    layout_flags_.complete(options);
    memory_.complete(options);
    device_.complete(options);
    offload_.complete(options);
    if (!one_host_) options.context = before_hosts_are_known(options.context, options.shape, layout);
    return options;
  }

  OptionsOf options_within(std::int64_t bytes) const {
    return [this, bytes](const Layout& layout) {
      TrainingOptions options = options_on(layout);
      options.memory_limit = options.memory_limit > 0 ? std::min(options.memory_limit, bytes) : bytes;
      return options;
    };
  }

  void require_place(const Layout& layout, std::int64_t world) const {
    const LayoutLimits limits = flags_.limits(options_on(layout), world);
    require_fits(layout, limits);
    require_room(
        layout, limits, [&](const Layout& other) { return options_on(other); }, memory_.about());
  }

  // Returns how the run ended. Every rank calls it; only rank 0 logs and records.
  std::string loop(Session& session, RunRecord& run, Training& training, const train::Dataset& data,
                   std::optional<train::Records>& records, train::Accounting& accounting) {
    const std::int64_t last = flags_.steps();
    const Progress::Screen screen =
        run.recorder && session.run_name.empty() ? Progress::screen_of(stderr) : Progress::Screen{};
    Progress progress("train", last, session.clock, screen);
    const double began = session.clock.seconds();
    const ReadSamples read = data.training();
    while (training.steps() < last) {
      const double start = session.clock.seconds();
      session.runtime->now(fmt::format("step {}", training.steps() + 1));
      const StepResult result = training.step(read);
      accounting.stepped(result);
      const double now = session.clock.seconds(), rate = static_cast<double>(result.tokens) / (now - start);
      const double flops = rate * training.options().shape.flops_per_token();
      training.check_activations();
      train::RankShare mine = train::share_of(result, training, signals_->pending().has_value());
      mine.faster_than_peak = flops > peak_.flops() && !peak_.measured_again();
      const std::vector<train::RankShare> shares = exchange(training.mesh().world(), mine);
      bool stop = std::ranges::any_of(shares, &train::RankShare::told_to_stop);
      if (shares[0].faster_than_peak || (peak_.measured_again() && flops > peak_.flops())) exceed_peak(run, flops);
      const double mfu = flops / peak_.flops();
      if (records) records->step(result, training.choices(), now - began, now - start, mfu, shares);
      if (records)
        say(run, progress, screen, result,
            fmt::format("{:.0f} tokens/s  MFU {}{}", rate, report::quantity(mfu, report::Unit::percent, 2),
                        words_for_drops(training)));
      if (eval_interval_ > 0 && result.step % eval_interval_ == 0 && result.step != last)
        stop |= !evaluate(session, run, records, training, data, accounting);
      if (records) records->choices(training.choices(), result.step, stop || result.step == last);
      const bool due = stop || result.step == last || (save_interval_ > 0 && result.step % save_interval_ == 0);
      if (due && !no_save_) save(session, run, training);
      if (!stop) continue;
      if (records) run.log.warn("stopped by a signal after step {}", result.step);
      return "stopped";
    }
    if (screen.terminal) progress.finish();
    if (evaluate(session, run, records, training, data, accounting)) return "ok";
    if (records) run.log.warn("stopped by a signal after step {}, during its evaluation", last);
    return "stopped";
  }

  // Called on all ranks. Ranks on the host measure the peak again the first time. Otherwise the step's rate becomes the
  // peak.
  void exceed_peak(RunRecord& run, double flops) {
    const bool first = peak_.may_measure_again();
    peak_.exceeded(flops);
    if (!run.recorder) return;
    run.log.warn("a step reached {:.0f} GFLOP/s, more than the peak that MFU refers to; {} {}", flops / 1e9,
                 first ? "measured again:" : "it becomes the peak:", note_peak(run));
  }

  std::string note_peak(RunRecord& run) const {
    run.recorder->number("peak_flops", static_cast<std::int64_t>(peak_.flops()));
    run.recorder->text("/", "peak", peak_.text());
    return peak_.text();
  }

  void say(RunRecord& run, Progress& progress, const Progress::Screen& screen, const StepResult& result,
           const std::string& speed) const {
    const std::string note =
        fmt::format("loss {:.4f}  {}{}", result.loss, speed, result.skipped ? "  skipped: the loss scale was too high" : "");
    if (screen.terminal)
      progress.update(result.step, note);
    else if (result.step % log_interval_ == 0 || result.step == flags_.steps())
      run.log.info("step {}/{}  {}  |g| {:.3f}  lr {:.2e}", result.step, flags_.steps(), note, result.gradient_norm,
                   result.rate);
  }

  // Beside the speed, because drops make a step faster: MFU counts the flops of dropped choices too.
  static std::string words_for_drops(const Training& training) {
    if (training.options().shape.experts.capacity == 0) return "";
    return "  dropped " + report::quantity(training.choices().dropped_share(), report::Unit::percent, 2);
  }

  std::int64_t eval_samples(const train::Dataset& data) const { return std::min(eval_samples_, data.held_out()); }

  // Returns false, on all ranks, if a signal cut the evaluation short. Launchers kill the ranks a second or two after
  // Ctrl-C, so a long evaluation must not delay the end of the record.
  bool evaluate(const Session& session, RunRecord& run, std::optional<train::Records>& records, Training& training,
                const train::Dataset& data, train::Accounting& accounting) {
    const std::int64_t samples = eval_samples(data);
    if (samples == 0) return true;
    session.runtime->now(fmt::format("the evaluation after step {}", training.steps()));
    const std::optional<double> found = training.evaluate_unless_cut(data.validation(), samples, [&] {
      return !mpi::ranks_where(session.runtime->world(), signals_->pending().has_value()).empty();
    });
    if (!found) accounting.cut_evaluation();
    if (!found) return false;
    const double loss = *found;
    accounting.evaluated();
    if (!records) return true;
    records->evaluation(training.steps(), loss, samples * training.options().shape.sequence);
    run.log.info("step {}: held-out loss {:.4f}, perplexity {:.2f}{}", training.steps(), loss, std::exp(loss),
                 data.floor() > 0 ? fmt::format(", {:.1f} % above the floor", 100 * (loss / data.floor() - 1)) : "");
    return true;
  }

  void save(Session& session, RunRecord& run, Training& training) {
    if (run.recorder) run.recorder->flush();
    session.runtime->now(fmt::format("saving step {}", training.steps()));
    const int file_systems = save_checkpoint(run.folder / "checkpoints", metadata_of(training, session.options.toml()),
                                             state_to_save(training), peers_of(training.mesh()));
    const std::string set = (run.folder / "checkpoints" / fmt::format("step-{}", training.steps())).string();
    if (Flight* const flight = session.runtime->flight()) flight->saved(set);
    if (!run.recorder) return;
    run.log.info("saved {}", set);
    if (file_systems > 1 && !std::exchange(said_not_shared_, true))
      run.log.warn(
          "the hosts do not share {}: checkpoints lie in parts on {} file systems, and can be loaded once every host "
          "has all files",
          run.folder.string(), file_systems);
  }

  train::Flags flags_;
  train::LayoutFlags layout_flags_;
  train::MemoryLimit memory_;
  train::ComputeDevice device_;
  train::ProductPeak peak_;
  std::string data_ = "synthetic", run_dir_ = "runs", tokenizer_, load_, load_hf_, trace_;
  train::TraceSteps trace_steps_;
  train::OffloadFlags offload_;
  bool one_host_ = true;  // false: some ranks may be on other hosts
  std::int64_t save_interval_ = 0, eval_interval_ = 0, eval_samples_ = 256, log_interval_ = 10;
  bool no_save_ = false, said_not_shared_ = false;
  std::optional<train::SimulatedRun> simulated_;
  std::optional<Signals> signals_;
};

}  // namespace

std::unique_ptr<Command> make_train() { return std::make_unique<Train>(); }

}  // namespace chorale
