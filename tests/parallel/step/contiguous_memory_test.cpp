// Tests contiguous memory for activations and gradients. Results, ledger and plan must be the same as in a run without
// contiguous memory. All blocks that a step allocates must be in one contiguous arena, without holes.
#include "parallel/plan/plan.hpp"
#include "tests/parallel/layouts.hpp"

namespace chorale {
namespace {

struct Row {
  const char* layout;
  Recompute recompute = Recompute::none;
  bool experts = false;
};
constexpr Row rows[] = {{"dp1"},
                        {"dp1", Recompute::full},
                        {"dp2", Recompute::selective},
                        {"dp2.z2"},
                        {"dp2.z3", Recompute::full},
                        {"dp1.tp2.sp"},
                        {"dp1.cp2", Recompute::selective},
                        {"dp1.pp2"},
                        {"dp1.pp2.zb-h1", Recompute::full},
                        {"dp2.ep2", Recompute::none, true}};

TrainingOptions options_of(const Row& row, const char* numerics, const Layout& layout) {
  TrainingOptions options = test::options_for(numerics, layout);
  options.batch.micro = layout.stages() > 1 ? 2 : options.batch.global / layout.replicas() / 2;
  options.recompute = row.recompute;
  if (row.experts) options.shape = test::small_moe();
  return options;
}

TEST_CASE("contiguous memory changes no bit", "[threads]") {
  for (const char* numerics : {"fast", "exact"})
    for (const Row& row : rows) {
      const Layout layout = parse_layout(row.layout, 0);
      TrainingOptions options = options_of(row, numerics, layout);
      INFO(numerics << ", " << row.layout);
      const test::Seen plain = test::trained(options, layout);
      options.memory.contiguous = true;
      CHECK(test::difference(plain, test::trained(options, layout)) == "");
    }
}

// Messages between stages are freed when the receiver has read them, and experts get a different number of rows in each
// step. So with pipelines or experts, later steps are allowed to request different memory than the first step. In all other
// cases, they are not.
TEST_CASE("what a step makes lies in one piece without holes, and memory is as planned") {
  for (const Row& row : rows) {
    const Layout layout = parse_layout(row.layout, 0);
    TrainingOptions options = options_of(row, "fast", layout);
    options.memory.contiguous = true;
    INFO(row.layout);
    CHECK(test::on_thread_mesh(layout, [&](Mesh mesh, Memory& memory) -> std::string {
            const RankPlan plan = plan_rank({.options = options, .layout = layout}, mesh.world().rank());
            test::Run run(options, std::move(mesh), memory);
            run.steps(3);
            const Ledger& ledger = run.training.memory().ledger();
            const PlannedArena::Report report = run.training.memory().arena()->report();
            const bool alike = layout.stages() == 1 && !row.experts;
            for (const Category c : {Category::activations, Category::grads}) {
              const auto planned = plan.peak[static_cast<std::size_t>(c)];
              if (!row.experts && ledger.peak(c) != planned)
                return fmt::format("{}: planned {}, measured {}", category_names[static_cast<std::size_t>(c)], planned,
                                   ledger.peak(c));
            }
            if (report.served == 0 || (alike && report.unplanned > 0))
              return fmt::format("{} requests served as planned, {} not", report.served, report.unplanned);
            if (report.free != report.bytes || report.largest_free != report.bytes)
              return fmt::format("of {} bytes, {} are free in blocks of at most {}", report.bytes, report.free,
                                 report.largest_free);
            if (report.bytes > report.least + report.least / 20)
              return fmt::format("{} bytes live at once, but the piece has {}", report.least, report.bytes);
            return "";
          }) == "");
  }
}

}  // namespace
}  // namespace chorale
