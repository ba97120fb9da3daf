#include <chorale/train.hpp>

#include "collectives/backends/backends.hpp"
#include "collectives/choice/selection.hpp"
#include "parallel/mesh/placement.hpp"
#include "parallel/mesh/worlds.hpp"
#include "parallel/plan/plan.hpp"
#include "parallel/state/resume.hpp"

namespace chorale {
namespace {

// Returns the layout on these ranks, and the options with the micro-batch size filled in.
std::pair<TrainingOptions, Layout> fitted(TrainingOptions options, const std::string& word, int ranks) {
  const LayoutLimits limits{.shape = options.shape,
                            .world = ranks,
                            .global_batch = options.batch.global,
                            .micro_batch = options.batch.micro,
                            .context = options.context};
  Layout layout = inferred(read_layout_word(word).layout, limits);
  require_fits(layout, limits);
  if (options.batch.micro == 0) options.batch.micro = default_micro_batch(layout, options.batch.global);
  return {std::move(options), std::move(layout)};
}

Mesh mesh_on(const Layout& layout, const Worlds& worlds, const std::string& algorithm) {
  require_reach(layout, worlds.backends(), worlds.topology());
  return Mesh(layout, worlds, {{"", algorithm}});
}

// Chooses the algorithms that Trainers on this host run for "auto": by the same tuning table and machine file.
std::shared_ptr<const Selector> selector_of_trainers() {
  return std::make_shared<const Selector>(tuning_of_this_host(), machine_for(""));
}

}  // namespace

struct Trainer::Parts {
  Parts(const std::pair<TrainingOptions, Layout>& fitted, const mpi::Runtime& runtime, Clock& clock,
        const std::string& backend, const std::string& algorithm)
      : word(to_string(fitted.second)),
        worlds(resolved({{"", backend}}, false, fitted.second, runtime), runtime, clock),
        training(fitted.first, mesh_on(fitted.second, worlds, algorithm), worlds.memory(), clock) {}

  std::string word;
  Worlds worlds;
  Training training;
};

Trainer::Trainer(const TrainingOptions& options, const std::string& layout, const mpi::Runtime& runtime, Clock& clock,
                 const std::string& backend, const std::string& algorithm)
    : parts_(std::make_unique<Parts>(fitted(options, layout, runtime.size()), runtime, clock, backend, algorithm)) {}
Trainer::~Trainer() = default;
Trainer::Trainer(Trainer&&) noexcept = default;
Trainer& Trainer::operator=(Trainer&&) noexcept = default;

StepResult Trainer::step(const ReadSamples& read) {
  clear_accounts(parts_->training.mesh());
  parts_->training.clear_tier_traffic();
  return parts_->training.step(read);
}
double Trainer::evaluate(const ReadSamples& read, std::int64_t samples) { return parts_->training.evaluate(read, samples); }

void Trainer::save(const std::string& folder) {
  Training& training = parts_->training;
  save_checkpoint(folder, metadata_of(training, ""), state_to_save(training), peers_of(training.mesh()));
}

void Trainer::load(const std::string& path) {
  Training& training = parts_->training;
  Log log({.rank = parts_->worlds.rank(), .level = "warn"});
  const Checkpoint checkpoint = Checkpoint::open(path, log, peers_of(training.mesh()));
  checkpoint.require_model(training.options().shape);
  resume(training, checkpoint);
}

std::int64_t Trainer::steps() const { return parts_->training.steps(); }
std::int64_t Trainer::samples() const { return parts_->training.samples(); }
const std::string& Trainer::layout() const { return parts_->word; }
const Ledger& Trainer::ledger() const { return parts_->training.memory().ledger(); }
RankPlan Trainer::measured() const { return observed(parts_->training); }

RankPlan plan_step(const TrainingOptions& options, const std::string& layout, int ranks, int rank,
                   const std::string& backend, const std::string& algorithm) {
  if (rank < 0 || rank >= ranks)
    usage_error("there is no such rank", fmt::format("rank {} of {} ranks", rank, ranks),
                fmt::format("use ranks 0 to {}", ranks - 1));
  const auto [fitting, planned] = fitted(options, layout, ranks);
  return plan_rank({.options = fitting,
                    .layout = planned,
                    .backends = {{"", backend == "auto" ? best_backend(false, joins_here) : backend_named(backend).name}},
                    .algorithms = {{"", algorithm}},
                    .selector = selector_of_trainers()},
                   rank);
}

}  // namespace chorale
