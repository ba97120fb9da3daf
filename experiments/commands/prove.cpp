// `chorale prove` proves that exact numerics give bit-identical results on every layout. In one launch, every legal layout
// of 1 to n ranks trains the same model on the same data. After every step, the loss, gradients, weights and moments are
// compared with a run on one rank. If anything differs, prove names the step, the tensor and the collectives that can be the
// cause, and exits with 3. If a layout fails, prove names the rank and the reason, continues with the other layouts, and
// exits with 1. If a signal stops prove, it reports the finished layouts. It then exits with 3 if one of them differs,
// otherwise with 1.
//
//   mpirun -np 8 build/chorale prove --layouts all --steps 10
//   mpirun -np 8 build/chorale prove --layouts dp2.tp2.pp2 --vary algorithm,schedule
//   mpirun -np 4 build/chorale prove --device cuda                      all runs use GPUs, including the reference run
//
//   8 ranks, layouts of 2:   │ 0 1 │ 2 3 │ 4 5 │ 6 7 │     a round has as many layouts of one size as fit side by side;
//             layouts of 3:  │ 0 1 2 │ 3 4 5 │ · · │       each has its own group of ranks, and the remaining ranks wait
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <span>

#include "experiments/common/run_record.hpp"
#include "experiments/common/stopped.hpp"
#include "experiments/prove/cases.hpp"
#include "experiments/prove/duration.hpp"
#include "experiments/prove/proof.hpp"
#include "experiments/prove/subject.hpp"
#include "experiments/prove/variations.hpp"
#include "experiments/train/device.hpp"
#include "experiments/train/flags.hpp"
#include "experiments/train/memory_limit.hpp"
#include "experiments/train/team.hpp"
#include "parallel/plan/plan.hpp"
#include "parallel/plan/room.hpp"
#include "parallel/state/fingerprint.hpp"
#include "parallel/step/assemble.hpp"
#include "src/base/progress.hpp"
#include "src/base/signals.hpp"
#include "src/base/text.hpp"
#include "src/memory/pool.hpp"
#include "src/record/run_folder.hpp"

namespace chorale {
namespace {

using namespace prove;

class Prove final : public Command {
 public:
  std::vector<Preset> presets() const override { return train::presets(); }

  void declare(Options& o) override {
    flags_.declare(o);
    memory_.declare(o);
    device_.declare(o);
    for (const Preset& preset : presets())
      if (preset.name == "tiny")
        for (const auto& [key, text] : preset.values) o.set({key, text, "default"});
    for (const auto& [key, text] : {std::pair{"numerics", "exact"}, {"dropout", "0.1"}, {"lr-warmup-iters", "2"}})
      o.set({key, text, "default"});
    o.section("the proof");
    o.add("layouts", layouts_, "layouts such as dp2.tp2.sp; all: every layout of 1 up to the started number of ranks");
    o.add("steps", steps_, "training steps to compare").range(1, 1e6);
    o.add("backend", backend_, "backend of the collectives: one name, or by axis: tp=shm,dp=ucx");
    o.add("algorithm", algorithm_, "algorithm of the collectives: one name, or by axis: dp=ring,tp=direct");
    train::declare_order(o, order_);
    o.add("vary", vary_, "also prove that layouts stay equal to one rank if one of these changes").one_of(kinds);
    o.add("combine", combine_,
          fmt::format("prove every layout with all combinations of these changes; on more than {} ranks, with a few that "
                      "contain every pair",
                      most_ranks_of_products))
        .one_of(kinds);
    o.add("run-dir", run_dir_, "create the run's folder in this folder").words("DIR").changes(Effect::output);
  }

  void check(const Launch& launch) override {
    require_writable(run_dir_);
    Documents::named(flags_.document_mask().documents);
    device_.check();
    signals_.emplace();
    const Case plain{plain_layout(), train::backends_by_axis(backend_), train::algorithms_by_axis(algorithm_), flags_.on({}),
                     flags_.document_mask()};
    chorale::check(plain.options, plain.layout);
    for (const auto& list : {vary_, combine_}) check_kinds(list, plain.options.shape);
    if (layouts_ == std::vector<std::string>{"all"}) return;
    for (const std::string& word : layouts_) parse_layout(word, 0);
    if (launch.launcher.empty()) return;  // the number of ranks is unknown before MPI starts
    for (const Case& row : cases_of(layouts_, launch.size, plain)) require_algorithms(row);
  }

  int run(Session& session) override {
    flight_ = session.runtime->flight();
    signals_->tell(flight_);
    const mpi::Runtime& runtime = *session.runtime;
    device_.open(runtime);
    require_room_for_one(runtime);
    const TrainingOptions options = flags_.on({}, {.memory_limit = memory_.bytes(), .device = &device_});
    const Case plain{plain_layout(), resolved(train::backends_by_axis(backend_), device_.plugin() != nullptr, {}, runtime),
                     train::algorithms_by_axis(algorithm_), options, flags_.document_mask()};
    std::vector<Case> cases = cases_of(layouts_, runtime.size(), plain);
    for (Case& row : varied(layouts_, runtime.size(), plain, vary_)) cases.push_back(std::move(row));
    for (Case& row : combined(layouts_, runtime.size(), plain, combine_)) cases.push_back(std::move(row));
    const auto ranks = gather_rank_facts(runtime, session.clock);
    RunRecord record = open_run_record(run_dir_, session, ranks);
    if (record.recorder) record.recorder->text("/", "device", device_.about());
    const double began = session.clock.seconds();
    References references;
    runtime.now("the run on one rank");
    if (record.recorder) references = train_alone(cases, plain, session.clock);
    if (record.recorder) say_how_long(cases, references, record, ranks);
    const std::vector<Proof> proofs = prove_all(cases, references, session, record, ranks);
    int code = 0;
    if (runtime.rank() == 0) {
      fmt::print("{}", table_of(proofs).print("text"));
      const auto equal = std::ranges::count(proofs, Proof::Outcome::equal, &Proof::outcome);
      const auto differ = std::ranges::count(proofs, Proof::Outcome::differs, &Proof::outcome);
      const auto all = static_cast<std::int64_t>(cases.size()), done = static_cast<std::int64_t>(proofs.size());
      fmt::print("{} of {} equal to one rank in {} steps, {}\n", equal, all, steps_,
                 human_seconds(session.clock.seconds() - began));
      std::fflush(stdout);
      if (done < all)
        say_stopped(fmt::format("{} of {} layouts were compared, {} of them equal", done, all, equal),
                    "start it again for all, or name some with --layouts");
      code = static_cast<int>(differ > 0 ? Exit::check : equal < all ? Exit::runtime : Exit::ok);
    }
    return std::stoi(mpi::broadcast(runtime.world(), std::to_string(code)));
  }

 private:
  Layout plain_layout() const { return {.order = train::order_of(order_)}; }

  // Determines the memory limit. The reference run trains the complete model on one rank. If the model does not fit there,
  // throws NoRoom.
  void require_room_for_one(const mpi::Runtime& runtime) {
    if (!device_.asked()) memory_.settle(runtime);
    const auto options_on = [&](const Layout& layout) { return flags_.on(layout, {.memory_limit = memory_.bytes()}); };
    if (const auto shortage = shortage_of(Layout(), options_on, memory_.about()))
      throw NoRoom(Exit::usage, shortage->what, shortage->numbers,
                   "every layout is compared with one rank alone: use a smaller model or batch");
  }

  // Collective. The ranks of a layout agree after each step whether to stop, because launchers kill ranks about one second
  // after asking them to end.
  bool any_told_to_stop(Axis& world) {
    told_to_stop_ = told_to_stop_ || signals_->pending();
    const std::vector<std::string> all = world.exchange(told_to_stop_ ? "stop" : "-");
    return told_to_stop_ = std::ranges::count(all, "stop") > 0;
  }

  // Trains until the last step, an error, or a request to stop. After an error, tells the other ranks of the layout not to
  // wait for this rank.
  History train(const TrainingOptions& options, Mesh mesh, Memory& memory, const ReadSamples& read, Clock& clock) {
    History history;
    const double began = clock.seconds();
    auto pool = std::make_unique<Pool>(memory);
    std::unique_ptr<Training> training;
    try {
      training = std::make_unique<Training>(options, std::move(mesh), *pool, clock);
      while (training->steps() < steps_) {
        const StepResult result = training->step(read);
        if (flight_) flight_->heartbeat();
        history.steps.push_back({result.loss, result.gradient_norm, gradient_fingerprint(*training)});
        // Taking the fingerprint of the states waits for a delayed update. With delayed updates, the fingerprint is
        // therefore taken only after the last step, so that each update can overlap the next step.
        if (options.update != UpdateTime::delayed || training->steps() == steps_)
          history.steps.back().prints.merge(fingerprint(*training));
        if (any_told_to_stop(training->mesh().world())) break;
      }
    } catch (const std::exception& error) {
      history.failure = error.what();
      history.failed_at = clock.seconds();
      if (training) {
        for (const auto& axis : training->mesh().axes()) axis->give_up(error);
        training.release();
        pool.release();  // leaked on purpose: peers can still access buffers of unfinished calls
      }
    }
    history.seconds = clock.seconds() - began;
    return history;
  }

  // Trains the model of each case on one rank, with the same data.
  References train_alone(const std::vector<Case>& cases, const Case& plain, Clock& clock) {
    HostMemory host;
    References references;
    for (const Case& row : cases) {
      if (reference_of(row, references)) continue;
      TrainingOptions options = plain.options;
      options.shape = row.options.shape;
      options.batch.packed = row.options.batch.packed;
      options.optimizer.clip = row.options.optimizer.clip;
      if (row.options.update == UpdateTime::delayed) options.update = UpdateTime::delayed;
      references.emplace_back(Subject(row),
                              train(options, Mesh(), device_.memory() ? *device_.memory() : host, reader_of(row), clock));
      if (const std::string& failure = references.back().second.failure; !failure.empty())
        throw Error(
            Exit::runtime,
            fmt::format("the reference run on one rank failed{}{}", row.variation.empty() ? "" : ": ", row.variation),
            failure, "fix this first: all layouts are compared with it");
    }
    return references;
  }

  void say_how_long(const std::vector<Case>& cases, const References& references, RunRecord& record,
                    const std::vector<RankFacts>& ranks) {
    std::set<std::pair<std::string, int>> cores;
    for (const RankFacts& rank : ranks)
      for (const int cpu : rank.cpus) cores.emplace(rank.kernel, cpu);
    expected_ = expected_seconds(cases, references, std::ssize(ranks), std::ssize(cores));
    record.log.info("{} cases of {} steps, each as much work as the run on one rank ({}): about {} on {} cores",
                    cases.size(), steps_, human_seconds(references.at(0).second.seconds), human_seconds(expected_),
                    cores.size());
  }

  // Runs the cases in rounds until a rank is told to stop. The cases of a round have the same number of ranks and the same
  // backends. Rank 0 gets the proofs of all cases that were not interrupted.
  std::vector<Proof> prove_all(const std::vector<Case>& cases, const References& references, Session& session,
                               RunRecord& record, const std::vector<RankFacts>& ranks) {
    const mpi::Runtime& runtime = *session.runtime;
    std::map<ByAxis, Worlds> worlds;
    for (const Case& row : cases)
      if (!worlds.contains(row.backends)) {
        const auto made = worlds.emplace(row.backends, Worlds(row.backends, runtime, session.clock)).first;
        if (device_.memory()) made->second.use_device(device_.memory());
      }
    std::optional<Progress> progress;
    std::optional<ProofRecords> records;
    if (runtime.rank() == 0) {
      progress.emplace("prove", static_cast<std::int64_t>(cases.size()), session.clock,
                       Progress::screen_at(session.log_level));
      progress->guess(expected_);
      records.emplace(*record.recorder, cases);
    }
    std::vector<Proof> proofs;
    for (std::size_t first = 0; first < cases.size();) {
      told_to_stop_ = told_to_stop_ || signals_->pending();
      if (!mpi::ranks_where(runtime.world(), told_to_stop_).empty()) break;
      const std::span<const Case> round = round_from(std::span(cases).subspan(first), runtime.size());
      runtime.now(fmt::format("layout {} of {}", first + 1, cases.size()));
      if (progress)
        progress->update(static_cast<std::int64_t>(first),
                         to_string(round[0].layout) + (round.size() > 1 ? " …" : "") + " " + round[0].variation);
      auto number = static_cast<std::int64_t>(first);
      for (Proof& proof : prove_round(round, worlds.at(round[0].backends), session, ranks)) {
        proof.number = number++;
        const bool whole = proof.history.steps.size() == static_cast<std::size_t>(steps_);
        if (!whole && proof.history.failure.empty()) continue;  // interrupted
        proof.difference = first_difference(*reference_of(proof.row, references), proof.history, proof.row.options.shape);
        records->add(proof);
        proofs.push_back(std::move(proof));
      }
      if (records) records->flush();
      first += round.size();
    }
    const bool stopped = proofs.size() < cases.size();
    if (progress && !stopped) progress->finish();
    if (records) records->finish(stopped ? "stopped" : "ok");
    return proofs;
  }

  static std::span<const Case> round_from(std::span<const Case> cases, std::int64_t world) {
    const std::int64_t ranks = cases[0].layout.ranks(), room = world / ranks;
    std::size_t many = 1;
    while (many < cases.size() && static_cast<std::int64_t>(many) < room && cases[many].layout.ranks() == ranks &&
           cases[many].backends == cases[0].backends)
      ++many;
    return cases.first(many);
  }

  // Runs one round. On rank 0, returns the proofs of the round; on other ranks, returns an empty list.
  std::vector<Proof> prove_round(std::span<const Case> round, const Worlds& world, Session& session,
                                 const std::vector<RankFacts>& facts) {
    const mpi::Runtime& runtime = *session.runtime;
    const auto ranks = static_cast<int>(round[0].layout.ranks());
    const int group = runtime.rank() / ranks;
    const bool takes_part = group < static_cast<int>(round.size());
    History seen;
    {
      const Worlds part = world.split(takes_part ? group : -1);
      if (takes_part) {
        const Case& row = round[static_cast<std::size_t>(group)];
        seen = train(row.options, Mesh(row.layout, part, row.algorithms), part.memory(), reader_of(row), session.clock);
        if (!seen.failure.empty())  // printed immediately, in case the failure hangs the launch
          fmt::print(stderr, "prove: {} failed on rank {}: {}\n", to_string(row.layout), runtime.rank(), seen.failure);
        if (runtime.rank() % ranks > 0) seen.steps.clear();  // only a layout's first rank reports its steps
      }
    }
    mpi::sleep_until_all(runtime.world(), session.clock);  // idle ranks sleep, so that the other ranks can use their cores
    const std::vector<std::string> texts = mpi::gather(runtime.world(), seen.text());
    std::vector<Proof> proofs;
    if (texts.empty()) return proofs;
    for (std::size_t i = 0; i < round.size(); ++i) {
      const auto base = static_cast<int>(i) * ranks;
      Proof proof{.row = round[i], .history = History::read(texts[static_cast<std::size_t>(base)])};
      double earliest = HUGE_VAL;  // time of the first failure; later failures can be its consequences
      for (int r = base; r < base + ranks; ++r) {
        const History other = History::read(texts[static_cast<std::size_t>(r)]);
        const double at = other.failed_at + facts[static_cast<std::size_t>(r)].clock_offset;
        if (other.failure.empty() || at >= earliest) continue;
        earliest = at;
        proof.history.failure = other.failure;
        proof.failed_on = r;
      }
      proofs.push_back(std::move(proof));
    }
    return proofs;
  }

  train::Flags flags_;
  train::MemoryLimit memory_;
  train::ComputeDevice device_;
  std::vector<std::string> layouts_{"all"}, vary_, combine_;
  std::int64_t steps_ = 10;
  double expected_ = 0;  // predicted duration in seconds
  std::vector<std::string> backend_{"auto"}, algorithm_{"auto"}, order_{"auto"};
  std::string run_dir_ = "runs";
  std::optional<Signals> signals_;
  Flight* flight_ = nullptr;  // the flight recorder of this rank; can be null
  bool told_to_stop_ = false;
};

}  // namespace

std::unique_ptr<Command> make_prove() { return std::make_unique<Prove>(); }

}  // namespace chorale
