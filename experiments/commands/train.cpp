// `chorale train` trains a transformer and records every step.
//
//   build/chorale train --preset nano --dtype bf16 --train-iters 600          synthetic data, whose lowest loss is known
//   build/chorale train --data data/english.bin --save-interval 100           the user's own data
//   build/chorale train --load runs/latest --train-iters 1200                 resumes a run with bit-identical results
//   mpirun -n 8 build/chorale train --layout dp2.tp2.pp2.z1.sp                eight ranks; any layout resumes any run
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "experiments/common/kept_tokenizer.hpp"
#include "experiments/common/machine_named.hpp"
#include "experiments/common/machine_watch.hpp"
#include "experiments/common/same_hosts.hpp"
#include "experiments/report/record_set.hpp"
#include "experiments/train/accounting.hpp"
#include "experiments/train/announcement.hpp"
#include "experiments/train/attention_balance.hpp"
#include "experiments/train/dataset.hpp"
#include "experiments/train/ds_config.hpp"
#include "experiments/train/flags.hpp"
#include "experiments/train/gantt.hpp"
#include "experiments/train/layout_flags.hpp"
#include "experiments/train/loop.hpp"
#include "experiments/train/megatron_flags.hpp"
#include "experiments/train/memory_limit.hpp"
#include "experiments/train/prediction.hpp"
#include "experiments/train/product_peak.hpp"
#include "experiments/train/records.hpp"
#include "experiments/train/simulated.hpp"
#include "experiments/train/team.hpp"
#include "experiments/train/trace.hpp"
#include "parallel/plan/room.hpp"
#include "parallel/prediction/prefetch.hpp"
#include "parallel/state/checkpoint.hpp"
#include "parallel/state/resume.hpp"
#include "parallel/state/stored_weights.hpp"
#include "parallel/step/assemble.hpp"
#include "parallel/step/stage.hpp"
#include "src/base/host.hpp"
#include "src/base/launch.hpp"
#include "src/base/signals.hpp"
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
    flags_.declare_parallel(o, layout_flags_);
    memory_.declare(o);
    device_.declare(o);
    flags_.declare_offload(o);
    o.section("data and records", Effect::output);
    o.add("data", data_, "a token file (made by chorale data tokenize), or synthetic: the embedded language")
        .words("FILE")
        .changes(Effect::work);
    o.add("tokenizer", tokenizer_, "tokenizer of the data; the run keeps a copy for generate and export")
        .words("bytes|FILE|DIR")
        .only_where("a file of tokens", [this] { return data_ == "synthetic" ? "synthetic data is not text" : ""; });
    o.add("run-dir", run_dir_, "create the run's folder in this folder").words("DIR");
    o.add("load", load_, "resume from a run, its checkpoints or one checkpoint; they set the model shape")
        .words("DIR")
        .instead_of("load-hf");  // a resumed run is the same experiment
    o.add("load-hf", load_hf_, "start from the weights and the shape in a Hugging Face model folder")
        .words("DIR")
        .instead_of("load")
        .changes(Effect::work);
    loop_.declare(o);
    peak_.declare(o);
    o.add("trace-steps", trace_, "trace passes, layers, kernels and calls of these steps, for a trace viewer: 10:13, or 10")
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
      on_accelerator_ = machine_named(machine).system.has_value();
      return void(simulated_.emplace(flags_, layout_flags_, [&](const Layout& layout) { return options_on(layout); }));
    }
    on_accelerator_ = device_.asked();
    if (!load_hf_.empty()) flags_.shape_options().require_own_shape(shape_of_folder(load_hf_), load_hf_);
    if (!load_.empty()) flags_.shape_options().require_shape(shape_of_checkpoint(load_), load_);
    // Errors in the options end the program here, before MPI starts.
    const std::int64_t ranks = layout_flags_.ranks_of(launch);
    const Layout layout = layout_flags_.choice(flags_.limits(ranks)).layout;
    const TrainingOptions options = options_on(layout);
    require_place(layout, ranks);
    chorale::check(options, layout);
    train::Dataset(data_, options.shape, options.seed, flags_.document_mask());
    loop_.keeping.check();
    loop_.on_nan.check(loop_.saving.any() || !load_.empty());
    warn(launch, loop_.saving.check(run_dir_, options, flags_.steps()));
    if (!tokenizer_.empty()) require_tokenizer(tokenizer_, options.shape.vocabulary);
    const std::int64_t ranks_here = one_host_ ? layout.ranks() : std::max(1, launch.on_host);
    warn(launch, train::check_offload(options, layout, ranks_here, on_accelerator_));
    signals_.emplace();
  }

  // If other programs use the GPU, an allocation can fail although the plan fits. The error then recommends layouts that fit
  // into the remaining memory.
  int run(Session& session) override try {
    if (simulated_) {
      simulated_->record(session, run_dir_);
      return 0;
    }
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
  static void warn(const Launch& launch, const std::string& warning) {
    if (!warning.empty()) Log({.rank = launch.rank, .level = "warn"}).warn("{}", warning);
  }

  int train(Session& session) {
    require_same_files(*session.runtime, {data_, tokenizer_, load_hf_});
    const auto ranks = gather_rank_facts(*session.runtime, session.clock);
    const int threads = threads_of_a_rank(*session.runtime, ranks);
    const int world = session.runtime->size();
    layout_flags_.require_launched(world, "train");
    const train::ParallelChoice asked = layout_flags_.choice(flags_.limits(world));
    if (!device_.asked()) memory_.settle(*session.runtime);
    train::Here here = this->here();
    here.threads = threads;
    here.hosts_known = true;
    TrainingOptions options = flags_.on(asked.layout, here);
    require_place(asked.layout, world);
    const train::Dataset data(data_, options.shape, options.seed, flags_.document_mask());
    const auto [choice, why_order] = train::placed(asked, options, topology_of(*session.runtime));

    train::TrainingTeam team(choice, device_, session);
    if (device_.memory() &&
        !memory_.lifted())  // backends and kernels need memory too; if there is too little, their allocations report it
      require_room(choice.layout, flags_.limits(options, world), options_within(device_.room_bytes()),
                   "its share of the GPU's free memory is");
    options = flags_.on(choice.layout, here);  // computed again, because the device is now open
    Mesh mesh = team.mesh();
    const std::string why_prefetch = settle_prefetch(options, team, mesh.world());
    const std::int64_t resident_before = team.spare_memory_of(options, session.runtime->rank());
    Training training(options, std::move(mesh), team.memory(), session.clock);
    const auto [loaded, load_seconds, from_memory] =
        load(session, training);  // precedes open_run_record(), which changes runs/latest

    const std::string tokenizer = !tokenizer_.empty() ? tokenizer_ : tokenizer_beside(load_hf_.empty() ? load_ : load_hf_);
    RunRecord run = open_run_record(run_dir_, session, ranks);
    if (run.recorder && !tokenizer.empty()) keep_tokenizer(tokenizer, run.folder / "tokenizer", options.shape.sequence);
    if (run.recorder && (from_memory || !loaded.empty())) note_load(*run.recorder, load_seconds, from_memory);
    loop_.keeping.begin(session, training);
    if (run.recorder) train::announce(run, team, training, data, flags_.steps());
    if (run.recorder && device_.memory()) run.log.result("on {}", team.about_device());
    if (run.recorder && !why_order.empty()) run.log.result("{}", why_order);
    if (run.recorder && !why_prefetch.empty()) run.log.result("{}", why_prefetch);
    if (const std::string warning = flags_.long_warmup(session.options); run.recorder && !warning.empty())
      run.log.warn("{}", warning);
    if (const Option& backend = *session.options.find("backend");
        run.recorder && choice.layout.ranks() == 1 && backend.text != backend.initial)
      run.log.warn("backend {} has no effect: one rank sends no messages", backend.text);
    if (const std::string excess = device_.memory() ? memory_.excess(device_.room_bytes()) : memory_.excess();
        run.recorder && !excess.empty())
      run.log.warn("{}", excess);
    MachineWatch watch(session);
    watch.warn(run.log);
    peak_.find(session, ranks, training.options(), device_);
    if (run.recorder) run.log.result("matrix products reach {}", train::note_peak(run, peak_));
    if (run.recorder && !peak_.file_trouble().empty())
      run.log.warn("this peak is not kept, so the next run measures it again: {}", peak_.file_trouble());
    if (run.recorder) train::record_prediction(run, team.plans(training.options()));
    std::optional<train::TrainRecords> records;
    if (run.recorder) records.emplace(*run.recorder, training.options().shape, loop_.log_interval);
    train::Accounting accounting(run, training, team.plans(training.options()), loop_.eval_samples_of(data),
                                 resident_before);
    if (trace_steps_) training.account().trace().record(trace_steps_.first, trace_steps_.last, train::trace_room(world));
    std::optional<train::Stragglers> stragglers;
    if (run.recorder) stragglers.emplace(team.plans(training.options()));
    const train::Loop::Parts parts{session, run,       training,   data,  records, accounting,
                                   peak_,   *signals_, stragglers, ranks, loaded};
    const std::string status = train::Loop(parts, loop_, flags_.steps()).run();
    session.runtime->now("shutdown");
    if (choice.layout.stages() > 1 && !training.account().events().empty()) {
      const train::MeasuredPipeline pipeline = train::measure_pipeline(training, ranks);
      if (run.recorder) train::report_pipeline(run, pipeline, session.run_name.empty());
    }
    if (trace_steps_) train::write_trace(run, training, trace_steps_, *session.runtime, ranks);
    train::report_attention_balance(run, training);
    const bool as_planned = accounting.settle(run, training);
    const std::vector<OtherWork> others = watch.finish(run.log);
    if (run.recorder) {
      write_other_work(*run.recorder, others);
      run.recorder->number("warm_up", report::warm_up_of(records->steps()));
      run.recorder->finish(as_planned ? status : "failed");
      run.log.result("recorded in {}", run.recorder->file().string());
    }
    return static_cast<int>(as_planned ? Exit::ok : Exit::check);
  }

  struct Loaded {
    std::string path;  // the checkpoint that was loaded, or ""
    double seconds = 0;
    bool from_memory = false;
  };
  Loaded load(Session& session, Training& training) const {
    const double begun = session.clock.seconds();
    Log log({.level = session.runtime->rank() == 0 ? session.log_level : "off"});
    if (!load_hf_.empty()) {
      HostMemory host;
      Ledger ledger;
      Allocator memory(host, ledger);
      StoredWeights(load_hf_, memory, log).read(weights_of(training.optimizer()), {training.options().kernels.threads});
      training.publish();
    }
    if (auto kept = loop_.keeping.newest(load_, peers_of(training.mesh()), log)) {
      resume(training, *kept);
      return {load_, session.clock.seconds() - begun, true};  // a roll-back needs a checkpoint on the disk
    }
    if (load_.empty()) return {};
    // The path is resolved before the ranks meet in open(). Once the ranks have met, rank 0 can set runs/latest to the new
    // run.
    const std::filesystem::path folder = std::filesystem::weakly_canonical(load_);
    const Checkpoint checkpoint = Checkpoint::open(folder, log, peers_of(training.mesh()));
    resume(training, checkpoint);
    const std::string path = checkpoint.path().string();
    if (Flight* const flight = session.runtime->flight()) flight->saved(path);
    require_steps_left(checkpoint);
    return {path, session.clock.seconds() - begun};
  }

  // These facts also reach metrics.jsonl, where the supervisor of a launch reads them.
  static void note_load(Recorder& recorder, double seconds, bool from_memory) {
    recorder.number("load_microseconds", std::llround(1e6 * seconds));
    if (from_memory) recorder.number("loaded_from_memory", 1);
  }

  // Replaces "auto" for --prefetch-units with rank 0's choice. On rank 0, returns a line for the user, or "".
  std::string settle_prefetch(TrainingOptions& options, const train::TrainingTeam& team, Axis& world) const {
    if (options.replicas.prefetch_units) return "";
    const PrefetchChoice choice = world.rank() == 0 ? fewest_units_ahead(team.plans(options)) : PrefetchChoice{};
    options.replicas.prefetch_units = exchange(world, choice.units)[0];
    return choice.in_words();
  }

  void require_steps_left(const Checkpoint& checkpoint) const {
    const std::int64_t step = checkpoint.metadata().step;
    if (step < flags_.steps()) return;
    usage_error("no step is left to train",
                fmt::format("{} is at step {}, but --train-iters is {}", checkpoint.path().string(), step, flags_.steps()),
                fmt::format("train longer with --train-iters {}, or resume from an earlier checkpoint", 2 * step));
  }

  train::Here here() const {
    return {
        .memory_limit = memory_.bytes(), .device = &device_, .on_accelerator = on_accelerator_, .hosts_known = one_host_};
  }

  TrainingOptions options_on(const Layout& layout) const { return flags_.on(layout, here()); }

  OptionsOf options_within(std::int64_t bytes) const {
    return [this, bytes](const Layout& layout) {
      TrainingOptions options = options_on(layout);
      options.memory.limit = options.memory.limit > 0 ? std::min(options.memory.limit, bytes) : bytes;
      return options;
    };
  }

  void require_place(const Layout& layout, std::int64_t world) const {
    const LayoutLimits limits = flags_.limits(options_on(layout), world);
    require_fits(layout, limits);
    require_room(
        layout, limits, [&](const Layout& other) { return options_on(other); }, memory_.about());
  }

  train::Flags flags_;
  train::LayoutFlags layout_flags_;
  train::MemoryLimit memory_;
  train::ComputeDevice device_;
  train::ProductPeak peak_;
  std::string data_ = "synthetic", run_dir_ = "runs", tokenizer_, load_, load_hf_, trace_;
  train::TraceSteps trace_steps_;
  bool on_accelerator_ = false, one_host_ = true;  // one_host_ is false if ranks can be on several hosts
  train::LoopOptions loop_;
  std::optional<train::SimulatedRun> simulated_;
  std::optional<Signals> signals_;
};

}  // namespace

std::unique_ptr<Command> make_train() { return std::make_unique<Train>(); }

}  // namespace chorale
