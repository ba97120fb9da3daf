// `chorale prove`: the equality matrix of exact numerics. Every legal layout of 1 to n ranks trains the same model on the same data in one
// launch; after every step all weights, moments and the loss are hashed and held against those of one rank. Exit 3 when anything
// differs, with the step, the tensor and the collectives that bring it together.
//
//   mpirun -np 8 build/chorale prove --layouts all --steps 10
//   mpirun -np 8 build/chorale prove --layouts dp2.tp2.pp2 --vary algorithm,schedule
//
//   8 ranks, layouts of 2:   │ 0 1 │ 2 3 │ 4 5 │ 6 7 │     a round: as many layouts of one size at once as there is room for
//             layouts of 3:  │ 0 1 2 │ 3 4 5 │ · · │       each on a group of its own; ranks left over wait
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <span>

#include "collectives/backends/backends.hpp"
#include "experiments/prove/cases.hpp"
#include "experiments/prove/history.hpp"
#include "experiments/run_record.hpp"
#include "experiments/train/dataset.hpp"
#include "experiments/train/flags.hpp"
#include "parallel/fingerprint.hpp"
#include "src/base/progress.hpp"
#include "src/base/text.hpp"
#include "src/base/text_table.hpp"
#include "src/memory/pool.hpp"
#include "src/record/run_folder.hpp"

namespace chorale {
namespace {

using namespace prove;

struct ProveRow {
  std::int64_t case_number = 0, step = 0;
  std::uint8_t equal = 0;
  double loss = 0, gradient_norm = 0;
  static auto columns() {
    return std::tuple{column("case", &ProveRow::case_number, "1", "row of /cases"),
                      column("step", &ProveRow::step, "1", "training step, from 1"),
                      column("equal", &ProveRow::equal, "", "whether all is as on one rank so far", {"no", "yes"}),
                      column("loss", &ProveRow::loss, "1", "mean cross entropy of the batch, nats a token"),
                      column("grad_norm", &ProveRow::gradient_norm, "1", "norm of the gradient before clipping")};
  }
};

// What became of a case.
struct Proof {
  Case row;
  History history;
  std::optional<Difference> difference;

  std::string verdict() const {
    if (!difference) return "equal";
    const Difference& d = *difference;
    const std::string others = d.differing > 1 ? fmt::format(" and {} more tensors", d.differing - 1) : "";
    return fmt::format("DIFFERS at step {}: {}{}; through {}", d.step, d.tensor, others,
                       collectives_behind(d.tensor, row.options.shape, row.layout));
  }
};

class Prove final : public Command {
 public:
  std::vector<Preset> presets() const override { return train::presets(); }

  void declare(Options& o) override {
    flags_.declare(o);
    for (const Preset& preset : presets())
      if (preset.name == "tiny")
        for (const auto& [key, text] : preset.values) o.set({key, text, "default"});
    for (const auto& [key, text] : {std::pair{"numerics", "exact"}, {"dropout", "0.1"}, {"lr-warmup-iters", "2"}})
      o.set({key, text, "default"});
    o.add("layouts", layouts_, "words such as dp2.tp2.sp, or all that fit on 1 to so many ranks as were started");
    o.add("steps", steps_, "training steps that are compared").range(1, 1e6);
    o.add("backend", backend_, "what carries the collectives");
    o.add("algorithm", algorithm_, "of the collectives: a name, auto or native");
    o.add("vary", vary_, "more rows, in which these change").one_of(variations);
    o.add("run-dir", run_dir_, "keep the run in a new folder below this one").words("DIR");
  }

  void check(const Launch&) override {
    require_writable(run_dir_);
    backend_named(backend_);
    flags_.training(1, {});
    if (layouts_ != std::vector<std::string>{"all"})
      for (const std::string& word : layouts_) parse_layout(word, 0);
  }

  int run(Session& session) override {
    const int world = session.runtime->size();
    const Case plain{Layout(), backend_, algorithm_, flags_.training(1, {})};
    std::vector<Case> cases = cases_of(layouts_, world, plain);
    for (Case& row : varied(layouts_, world, plain, vary_)) cases.push_back(std::move(row));
    const train::Dataset data("synthetic", plain.options.shape, plain.options.seed);
    const ReadSamples read = data.training();

    const auto ranks = gather_rank_facts(*session.runtime, session.clock);
    RunRecord record = open_run_record(run_dir_, session, ranks);
    const double began = session.clock.seconds();
    History expected;
    if (session.runtime->rank() == 0) {
      HostMemory host;
      expected = train(plain.options, Mesh(), host, read, session.clock);
    }
    std::vector<Proof> proofs = run_all(cases, expected, read, session);
    if (session.runtime->rank() != 0) return share_code(session, 0);
    const auto equal = std::count_if(proofs.begin(), proofs.end(), [](const Proof& p) { return !p.difference; });
    print(proofs);
    fmt::print("{} of {} equal to one rank in {} steps, {}\n", equal, proofs.size(), steps_,
               human_seconds(session.clock.seconds() - began));
    keep(*record.recorder, proofs);
    const bool all = equal == static_cast<std::int64_t>(proofs.size());
    return share_code(session, static_cast<int>(all ? Exit::ok : Exit::check));
  }

 private:
  static int share_code(const Session& session, int code) {
    return std::stoi(mpi::broadcast(session.runtime->world(), std::to_string(code)));
  }

  History train(const TrainingOptions& options, Mesh mesh, Memory& memory, const ReadSamples& read, Clock& clock) const {
    Pool pool(memory);
    Training training(options, std::move(mesh), pool, clock);
    History history;
    const double began = clock.seconds();
    for (std::int64_t i = 0; i < steps_; ++i) {
      const StepResult result = training.step(read);
      history.steps.push_back({result.loss, result.gradient_norm, fingerprint(training)});
    }
    history.seconds = clock.seconds() - began;
    return history;
  }

  // In rounds of cases of one size on one backend. Rank 0 gets what became of them.
  std::vector<Proof> run_all(const std::vector<Case>& cases, const History& expected, const ReadSamples& read,
                             Session& session) const {
    const mpi::Runtime& runtime = *session.runtime;
    std::map<std::string, Worlds> worlds;
    for (const Case& row : cases)
      if (!worlds.contains(row.backend))
        worlds.emplace(row.backend, Worlds(ByAxis{{"", row.backend}}, runtime, session.clock));
    const Progress::Screen screen = Progress::screen_of(stderr);
    std::optional<Progress> progress;
    if (runtime.rank() == 0) progress.emplace("prove", static_cast<std::int64_t>(cases.size()), session.clock, screen);
    std::vector<Proof> proofs;
    for (std::size_t first = 0; first < cases.size();) {
      const std::int64_t ranks = cases[first].layout.ranks(), room = runtime.size() / ranks;
      std::size_t last = first + 1;
      while (last < cases.size() && static_cast<std::int64_t>(last - first) < room && cases[last].layout.ranks() == ranks &&
             cases[last].backend == cases[first].backend)
        ++last;
      if (progress)
        progress->update(static_cast<std::int64_t>(first),
                         to_string(cases[first].layout) + (last - first > 1 ? " …" : "") + " " + cases[first].variation);
      const std::span<const Case> round(cases.data() + first, last - first);
      const auto histories = run_round(round, worlds.at(round[0].backend), read, session);
      for (std::size_t i = 0; i < histories.size(); ++i)
        proofs.push_back({round[i], histories[i], first_difference(expected, histories[i], round[i].options.shape)});
      first = last;
    }
    if (progress) progress->finish();
    return proofs;
  }

  // On rank 0: what each case of the round came to.
  std::vector<History> run_round(std::span<const Case> round, const Worlds& world, const ReadSamples& read,
                                 Session& session) const {
    const mpi::Runtime& runtime = *session.runtime;
    const auto ranks = static_cast<int>(round[0].layout.ranks());
    const int group = runtime.rank() / ranks;
    const bool takes_part = group < static_cast<int>(round.size());
    std::string seen;
    {
      const Worlds part = world.split(takes_part ? group : -1);
      if (takes_part) {
        const Case& row = round[static_cast<std::size_t>(group)];
        Mesh mesh(row.layout, part, {{"", row.algorithm}});
        const History history = train(row.options, std::move(mesh), part.memory(), read, session.clock);
        if (runtime.rank() % ranks == 0) seen = history.text();
      }
    }
    // MPI's own waits would take the cores from those who still train.
    Communicator(world.for_axis("world").split(0, runtime.rank())).barrier();
    const std::vector<std::string> texts = mpi::gather(runtime.world(), seen);
    std::vector<History> histories;
    for (const std::string& text : texts)
      if (!text.empty()) histories.push_back(History::read(text));
    return histories;
  }

  static void print(const std::vector<Proof>& proofs) {
    TextTable table({"ranks", "layout", "micro-batch", "variation", "seconds", "loss", "verdict"});
    for (const Proof& p : proofs)
      table.add({std::to_string(p.row.layout.ranks()), to_string(p.row.layout), std::to_string(p.row.options.micro_batch),
                 p.row.variation.empty() ? "-" : p.row.variation, fmt::format("{:.1f}", p.history.seconds),
                 fmt::format("{:.17g}", p.history.steps.back().loss), p.verdict()});
    fmt::print("{}", table.print("text"));
  }

  template <class Of>
  static auto each(const std::vector<Proof>& proofs, Of of) {
    std::vector<decltype(of(proofs[0]))> values;
    for (const Proof& proof : proofs) values.push_back(of(proof));
    return values;
  }

  static void keep(Recorder& recorder, const std::vector<Proof>& proofs) {
    recorder.dimension({.name = "number", .size = static_cast<std::int64_t>(proofs.size())});
    const auto texts = [&](const char* name, auto of) { recorder.texts("cases", name, "number", each(proofs, of)); };
    texts("layout", [](const Proof& p) { return to_string(p.row.layout); });
    texts("backend", [](const Proof& p) { return p.row.backend; });
    texts("algorithm", [](const Proof& p) { return p.row.algorithm; });
    texts("variation", [](const Proof& p) { return p.row.variation; });
    texts("verdict", [](const Proof& p) { return p.verdict(); });
    recorder.numbers("cases", "ranks", {"number"}, each(proofs, [](const Proof& p) { return p.row.layout.ranks(); }), "1",
                     "of the layout");
    recorder.numbers("cases", "micro_batch", {"number"},
                     each(proofs, [](const Proof& p) { return p.row.options.micro_batch; }), "1", "sequences at once");
    recorder.numbers("cases", "time", {"number"}, each(proofs, [](const Proof& p) { return p.history.seconds; }), "s",
                     "of its steps and their hashes");
    Table& table = recorder.table<ProveRow>({.group = "prove", .rows = "row"});
    for (std::size_t c = 0; c < proofs.size(); ++c)
      for (std::size_t i = 0; i < proofs[c].history.steps.size(); ++i) {
        const Moment& seen = proofs[c].history.steps[i];
        const auto step = static_cast<std::int64_t>(i + 1);
        const bool equal = !proofs[c].difference || step < proofs[c].difference->step;
        recorder.append(table, ProveRow{static_cast<std::int64_t>(c), step, equal, seen.loss, seen.gradient_norm});
      }
    recorder.finish("ok");
  }

  train::Flags flags_;
  std::vector<std::string> layouts_{"all"}, vary_;
  std::int64_t steps_ = 10;
  std::string backend_ = "shm", algorithm_ = "auto", run_dir_ = "runs";
};

}  // namespace

std::unique_ptr<Command> make_prove() { return std::make_unique<Prove>(); }

}  // namespace chorale
