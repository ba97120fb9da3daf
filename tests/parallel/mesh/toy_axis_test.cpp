// Adds an axis to the mesh that no code in parallel/ mentions. The axis needs one row in the axis table and one layer whose
// parameters are split along the axis. The ranks along the axis split the batch and the last norm; all other parameters are
// replicated. Layouts with this axis must be listed, planned and trained, and must exchange checkpoints with other layouts.
// Results must be bit-identical to a one-rank run.
#include "layers/wrapping.hpp"
#include "parallel/plan/plan.hpp"
#include "parallel/state/resume.hpp"
#include "src/math/cast.hpp"
#include "tests/catch.hpp"
#include "tests/parallel/layouts.hpp"
#include "tests/temporary.hpp"

namespace chorale {
namespace {

const AxisTable& with_toy() {
  static const AxisTable table = [] {
    AxisTable rows = all_axes();
    rows.add({.name = "toy", .noun = "toy", .divides = Divides::batch, .depth = 5, .grids = dense_grid});
    return rows;
  }();
  return table;
}

// The strategy of the toy axis: each rank along the axis keeps an equal part of the norm's parameters. The parameters are
// gathered before the norm runs, and the parameters' gradient is reduce-scattered to the ranks.
class CutNorm final : public WrappingLayer {
 public:
  CutNorm(LayerPointer norm, Axis& axis) : WrappingLayer(std::move(norm)), axis_(axis) {
    inner_->each_parameter([&](const ParameterPointer& whole) {
      const auto part = std::make_shared<Parameter>(*whole);
      Sharding{axis.rank(), axis.size(), {"toy"}}.cut(*part, 0);
      both_.push_back({whole, part});
    });
  }
  void each_parameter(const std::function<void(const ParameterPointer&)>& visit) const override {
    for (const Both& both : both_) visit(both.part);
  }
  Tensor forward(const Tensor& x, Context& context) override {
    gather(context);
    const Tensor y = inner_->forward(x, context);
    for (const Both& both : both_) both.whole->value = {};
    return y;
  }
  Tensor backward(const Tensor& dy, Context& context) override {
    gather(context);
    for (const Both& both : both_) {
      const DType type = context.numerics.gradient_type(context.compute);
      both.whole->gradient = context.typed(both.whole->shape, type, Category::workspace);
      clear(both.whole->gradient);
      both.whole->site = both.part->site;
    }
    const auto on_ready = std::exchange(context.on_gradient_ready, nullptr);
    const Tensor dx = inner_->backward(dy, context);
    context.on_gradient_ready = on_ready;
    for (const Both& both : both_) {
      both.part->site = both.whole->site;
      const Tensor sum = context.typed(both.part->local_shape(), both.whole->gradient.dtype(), Category::workspace);
      axis_.reduce_scatter(both.whole->gradient, sum);
      add(sum.slice(), both.part->gradient.slice(), context.queue);
      both.whole->value = both.whole->gradient = {};
      context.ready(*both.part);
    }
    return dx;
  }

 private:
  struct Both {
    ParameterPointer whole, part;
  };
  void gather(Context& context) {
    for (const Both& both : both_) {
      both.whole->value = context.tensor(both.whole->shape, Category::workspace);
      axis_.all_gather(both.part->value, both.whole->value);
    }
  }

  Axis& axis_;
  std::vector<Both> both_;
};

Model with_cut_norm(const ModelShape& shape, Recompute recompute, const Mesh& mesh) {
  Model model = build_gpt(shape, recompute, width_sharding(mesh));
  LayerPointer& norm = model.layers.layers().at(static_cast<std::size_t>(shape.layers) + 1);
  norm = std::make_unique<CutNorm>(std::move(norm), mesh.along({"toy"}));
  return model;
}

Layout toy_layout(const char* word) { return parse_layout(word, 0, with_toy()); }

TrainingOptions options_for(const Layout& layout) {
  TrainingOptions options = test::options_for("exact", layout);
  if (layout.axes == &with_toy()) options.build = with_cut_norm;
  return options;
}

const char* const words[] = {"dp1.toy2",    "dp1.toy3",           "dp2.toy2",       "dp2.toy2.z1",
                             "dp2.toy2.z2", "dp2.toy2.z3",        "dp1.toy2.pp2",   "dp1.tp2.toy2.sp",
                             "dp3.toy2.z3", "dp2.tp2.toy2.z3.sp", "dp2.pp2.toy2.z1"};

TEST_CASE("training with an axis added by one row has the same bits as training on one rank", "[threads]") {
  const test::Seen expected = test::train_alone(test::options_for("exact", {}));
  for (const char* word : words) {
    INFO(word);
    const Layout layout = toy_layout(word);
    CHECK(test::on_thread_mesh(layout, [&](Mesh mesh, Memory& memory) {
            return difference(expected, test::train(options_for(layout), std::move(mesh), memory));
          }) == "");
  }
}

TEST_CASE("a checkpoint saved with the toy axis loads under any layout, and the reverse", "[threads]") {
  HostMemory host;
  test::Seen expected = test::Run(test::options_for("exact", {}), Mesh(), host).steps(4).seen;
  expected.forget(2);
  const Layout layouts[] = {toy_layout("dp2.toy2.z1"), toy_layout("dp1.toy3"), parse_layout("dp1.tp2.pp2", 0)};
  for (const Layout& from : layouts) {
    INFO("saved by " << to_string(from));
    const test::TemporaryFolder folder;
    REQUIRE(test::on_thread_mesh(from, [&](Mesh mesh, Memory& memory) -> std::string {
              test::Run run(options_for(from), std::move(mesh), memory);
              run.steps(2);
              save_checkpoint(folder, metadata_of(run.training, ""), state_to_save(run.training),
                              peers_of(run.training.mesh()));
              return "";
            }) == "");
    for (const Layout& to : layouts) {
      INFO("loaded by " << to_string(to));
      CHECK(test::on_thread_mesh(to, [&](Mesh mesh, Memory& memory) {
              Log log({.level = "off"});
              test::Run run(options_for(to), std::move(mesh), memory);
              resume(run.training, Checkpoint::open(folder, log, peers_of(run.training.mesh())));
              return difference(expected, run.steps(2).seen);
            }) == "");
    }
  }
}

TEST_CASE("the toy axis appears in layout words, in the list of layouts and in plans", "[threads]") {
  CHECK(to_string(toy_layout("toy2.dp3.tp2")) == "dp3.tp2.toy2");
  CHECK(parse_layout("toy2", 6, with_toy())["dp"] == 3);
  std::int64_t with = 0, without = 0;
  for (const Layout& layout : all_layouts({test::small_shape(), 4, 12, 1, &with_toy()})) {
    CHECK(parse_layout(to_string(layout), 4, with_toy()) == layout);
    ++(layout["toy"] > 1 ? with : without);
  }
  CHECK(with > 0);
  CHECK(without == static_cast<std::int64_t>(test::layouts_of(4).size()));

  const Layout layout = toy_layout("dp2.toy2.z1");
  const PlanRequest request{
      .options = options_for(layout), .layout = layout, .backends = {{"", "threads"}}, .algorithms = {{"", "ring"}}};
  ThreadWorld world(4);
  CHECK(test::on_threads(4, [&](test::ThreadRank& me) {
          SystemClock clock;
          const Worlds worlds(open_world(world.transport(me.rank()), clock));
          test::Run run(request.options, Mesh(layout, worlds, request.algorithms), worlds.memory());
          clear_accounts(run.training.mesh());
          run.training.step(run.read);
          const Accounts made = accounts_of(run.training.mesh());
          const std::string trouble = chorale::difference(plan_rank(request, me.rank()).axes, made, false);
          me.check(trouble.empty(), "{}", trouble);
          const auto calls = [&](const char* axis, Collective what) {
            return made.at(axis).entries[static_cast<std::size_t>(what)].calls;
          };
          me.check(calls("toy", Collective::all_reduce) > 0, "the copies of a shard were not summed");
          me.check(calls("dp", Collective::reduce_scatter) > 0, "replicas of the dense axis have no shards");
        }) == "");
}

// Ranks that are replicas with respect to all other parameters hold different experts.
TEST_CASE("two grids can cover the same ranks") {
  const AxisTable& table = all_axes();
  const Layout layout = parse_layout("dp4.tp2.pp2.ep2", 16);
  CHECK(layout["edp"] == 2);
  CHECK(to_string(layout) == "dp4.tp2.pp2.ep2");
  for (int rank = 0; rank < 16; ++rank) {
    const Mesh mesh = Mesh::pretended(layout, rank, {}, {}, nullptr);
    INFO("rank " << rank);
    const auto place = [&](const char* axis) { return mesh.along({axis}).rank(); };
    CHECK(((place("pp") * 4 + place("dp")) * 2 + place("tp")) == rank);
    CHECK((((place("pp") * 2 + place("edp")) * 2 + place("ep")) * 2 + place("tp")) == rank);
    CHECK(mesh.along({"ep"}).size() == 2);
  }

  // If dp becomes the innermost axis, ep and edp become innermost too, because they divide the ranks of dp.
  const Layout swapped = parse_layout("dp4.tp2.pp2.ep2.tp-dp", 16);
  for (int rank = 0; rank < 16; ++rank) {
    const Coordinates at = coordinates_of(swapped, rank);
    const auto on = [&](const char* axis) { return at[table.row_of(axis)]; };
    INFO("rank " << rank);
    CHECK((on("pp") * 2 + on("tp")) * 4 + on("dp") == rank);
    CHECK(((on("pp") * 2 + on("tp")) * 2 + on("edp")) * 2 + on("ep") == rank);
  }
}

}  // namespace
}  // namespace chorale
