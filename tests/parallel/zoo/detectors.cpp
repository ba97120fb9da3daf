#include "tests/parallel/zoo/detectors.hpp"

#include <algorithm>
#include <cmath>

#include "tests/parallel/plan/plan_requests.hpp"

namespace chorale::zoo {
namespace {

constexpr std::int64_t evaluated_samples = 7;  // number of samples in the evaluation after the first step, for models with
                                               // experts

double relative(double right, double other) { return std::abs(other - right) / right; }

std::string at_step(std::size_t index) { return fmt::format("step {}", index + 1); }

double margin(double deviation, double tolerance) { return std::abs(deviation / tolerance - 1); }

Finding look_at_losses(const Watched& watched, const Expected& expected) {
  const std::vector<StepResult>&right = expected.one_rank.steps, &seen = watched.seen.steps;
  Finding finding;
  for (std::size_t i = 0; i < right.size() && finding.cell.empty(); ++i) {
    const double deviation = relative(right[i].loss, seen.at(i).loss);
    finding.margin = std::min(finding.margin, margin(deviation, loss_tolerance));
    if (deviation <= loss_tolerance) continue;
    finding.cell = at_step(i);
    finding.details = fmt::format("step {}: loss {:.4g} and {:.4g}", i + 1, right[i].loss, seen[i].loss);
  }
  return finding;
}

Finding look_at_norm(const Watched& watched, const Expected& expected) {
  const double right = expected.one_rank.steps.at(0).gradient_norm, seen = watched.seen.steps.at(0).gradient_norm;
  const double deviation = relative(right, seen), distance = margin(deviation, norm_tolerance);
  if (deviation <= norm_tolerance) return {.margin = distance};
  return {at_step(0), fmt::format("step 1: norm {:.4g} and {:.4g}", right, seen), distance};
}

Finding look_at_copies(const Watched& watched, const Expected&) {
  for (std::size_t i = 0; i < watched.seen.prints.size(); ++i)
    for (const auto& [name, print] : watched.seen.prints[i])
      if (name.find('@') != std::string::npos) return {at_step(i), fmt::format("step {}: {} differs", i + 1, name)};
  return {};
}

Finding look_at_plan(const Watched& watched, const Expected& expected) {
  const RankPlan &planned = expected.step, &made = watched.last_step;
  if (const std::string calls = difference(planned.axes, made.axes, expected.knows_routing); !calls.empty())
    return {"calls", calls};
  if (!expected.knows_memory) return {};
  const std::string bytes = test::difference_of_steps(planned, made, expected.knows_routing);
  return bytes.empty() ? Finding{} : Finding{"memory", bytes};
}

// Returns the name of the first quantity that differs, without its values. `what` is a text returned by difference().
std::string quantity_of(const std::string& what) {
  if (what.find('@') != std::string::npos) return "copies";
  if (what.starts_with("moment")) return "moments";
  if (what.starts_with("block.")) return "weights";
  return what.substr(0, what.find(' '));
}

// The cell contains the step and the first quantity that differs, such as "step 2, loss".
Finding look_at_bits(const Watched& watched, const Expected& expected) {
  const std::string all = difference(expected.one_rank, watched.seen);
  const std::size_t colon = all.find(": ");
  if (colon == std::string::npos) return {all, all};
  return {fmt::format("{}, {}", all.substr(0, colon), quantity_of(all.substr(colon + 2))), all};
}

}  // namespace

const std::array<Detector, how_many> detectors{{{"loss curve", look_at_losses},
                                                {"gradient norm", look_at_norm},
                                                {"copies", look_at_copies},
                                                {"planned = measured", look_at_plan},
                                                {"proof", look_at_bits}}};

Watched watch(const TrainingOptions& options, Mesh mesh, Memory& memory, int steps, void (*make)(Run&)) {
  Run run(options, std::move(mesh), memory);
  make(run);
  if (run.seen.steps.empty()) run.steps(1);
  if (options.shape.experts.count > 0) run.training.evaluate(run.read, evaluated_samples);
  run.steps(steps - 1 - static_cast<int>(run.seen.steps.size()));
  clear_accounts(run.training.mesh());
  run.steps(1);
  return {run.seen, observed(run.training)};
}

TrainingOptions options_of_one_rank(const Mistake& mistake) {
  TrainingOptions options = test::options_for("exact", {});
  options.shape = tiny_shape();
  mistake.setting(options);
  return options;
}

TrainingOptions options_in(const Layout& layout, const Mistake& mistake) {
  TrainingOptions options = options_of_one_rank(mistake);
  options.batch.micro = options.batch.global / layout.replicas() % 2 == 0 ? 2 : 1;
  return options;
}

Findings findings_in(const Layout& layout, const Mistake& mistake, bool mistaken, test::Seen one_rank, int steps) {
  one_rank.keep(steps);
  const TrainingOptions options = options_in(layout, mistake);
  const PlanRequest request{
      .options = options, .layout = layout, .backends = {{"", "threads"}}, .algorithms = {{"", "auto"}}};
  const bool routes = options.shape.experts.count > 0;
  std::vector<Findings> by_rank(static_cast<std::size_t>(layout.ranks()));
  const std::string trouble = test::on_thread_mesh(layout, [&](Mesh mesh, Memory& memory) {
    const int rank = mesh.world().rank();
    const Expected expected{.one_rank = one_rank,
                            .step = plan_run(request, rank, routes ? evaluated_samples : 0).step,
                            .knows_routing = knows_routing(options, layout),
                            .knows_memory = !routes || layout.expert_ranks() == 1};
    TrainingOptions own = options;
    if (mistaken) mistake.change(own, mesh);
    const auto make = mistaken ? mistake.make : [](Run&) {};
    const Watched watched = watch(own, std::move(mesh), memory, steps, make);
    for (std::size_t d = 0; d < how_many; ++d)
      by_rank[static_cast<std::size_t>(rank)][d] = detectors[d].look(watched, expected);
    return std::string();
  });
  require(trouble.empty(), "the run failed: {}", trouble);
  Findings first;
  for (std::size_t d = 0; d < how_many; ++d)
    for (const Findings& mine : by_rank)
      if (first[d].cell.empty()) first[d] = mine[d];
  return first;
}

double loss_difference(const test::Seen& a, const test::Seen& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.steps.size(); ++i) most = std::max(most, relative(a.steps[i].loss, b.steps.at(i).loss));
  return most;
}

}  // namespace chorale::zoo
