// Tests gradients that are summed over ranks and stored in bf16 (--grad-dtype). Each rank adds its micro-batches' gradients
// in f32 and rounds the sum once. Bytes are compared with closed forms. Every element is compared with a reference that
// rounds at the same points. Other cases test losses, offload and refused options.
#include <cmath>

#include "parallel/plan/plan.hpp"
#include "tests/parallel/hybrid.hpp"
#include "tests/refused.hpp"
#include "tests/temporary.hpp"

namespace chorale {
namespace {

TrainingOptions options_of(const Layout& layout, std::optional<DType> sums = DType::bf16) {
  TrainingOptions options = test::hybrid_options("fast", layout);
  options.replicas.gradient_sums = sums;
  return options;
}

// Compares the bytes sent with ring algorithms. Each bucket is padded for the ranks that shard it, and Ψ includes the
// padding.
TEST_CASE("ranks send and hold 2 bytes for each bf16 element of a sum, and gathers of values stay as they are") {
  struct Row {
    const char* layout;
    std::int64_t s, r;  // number of ranks that shard, and number of groups
  };
  for (const auto& [word, s, r] :
       {Row{"dp2", 2, 1}, {"dp2.z1", 2, 1}, {"dp2.z2", 2, 1}, {"dp2.z3", 2, 1}, {"dp3.z3", 3, 1}, {"dp2.rep2.z3", 2, 2}})
    for (const DType sums : {DType::f32, DType::bf16}) {
      const Layout layout = parse_layout(word, 0);
      PlanRequest request{.options = options_of(layout, sums), .layout = layout};
      constexpr std::int64_t m = 2;  // micro-batches
      request.options.batch.micro = 1;
      request.options.batch.global = m * s * r;
      request.options.shape = test::odd_shape();
      request.backends = {{"", "threads"}};
      request.algorithms = {{"", "ring"}};
      test::Pretence here(request.options, layout, 0);
      const auto [psi, table] = test::sizes_of(here.training.buckets(), s * r);
      const RankPlan plan = plan_rank(request, 0);
      const auto sent = [&](const char* axis, Collective what) -> std::int64_t {
        return plan.axes.contains(axis) ? plan.axes.at(axis).entries[static_cast<std::size_t>(what)].bytes : 0;
      };
      INFO(word << " " << name_of(sums));
      const std::int64_t e = size_of(sums), scatters = layout.zero == 0 ? 0 : layout.zero == 1 ? psi : m * psi;
      const std::int64_t gathers = layout.zero == 3 ? m * 2 * (psi + table) : layout.zero == 0 ? 0 : psi;
      CHECK(sent("dp", Collective::reduce_scatter) == e * scatters * (s - 1) / s);
      CHECK(sent("dp", Collective::all_gather) == 4 * gathers * (s - 1) / s);
      CHECK(sent("rep", Collective::all_reduce) == e * 2 * (psi / s) * (r - 1) / r);
      CHECK(sent("dp", Collective::all_reduce) == (layout.zero == 0 ? e * 2 * psi * (s - 1) / s : 0));
      // Rounded gradients overwrite the unrounded gradients in memory. So below ZeRO-2, memory stays the same.
      CHECK(plan.held[static_cast<std::size_t>(Category::grads)] == (layout.zero >= 2 ? e * psi / s : 4 * psi));
    }
}

// The bytes of all gradient sums over ranks must halve, compared with f32. This includes sums over tensor ranks, and over
// the two stages that hold a tied table.
TEST_CASE("every sum of gradients over ranks takes half the bytes in bf16") {
  for (const char* word :
       {"dp2.pp2", "dp2.pp2.z1", "dp2.pp2.z3", "dp2.tp2.sp", "dp2.tp2.z3.sp", "dp2.cp2.z2", "dp2.rep2.z1"}) {
    const Layout layout = parse_layout(word, 0);
    for (int rank = 0; rank < layout.ranks(); ++rank) {
      const auto plan_in = [&](DType sums) {
        PlanRequest request{.options = options_of(layout, sums), .layout = layout};
        request.backends = {{"", "threads"}};
        request.algorithms = {{"", "ring"}};
        return plan_rank(request, rank);
      };
      const RankPlan wide = plan_in(DType::f32), narrow = plan_in(DType::bf16);
      std::int64_t halved = 0;
      for (const auto& [axis, account] : wide.axes)
        for (const Collective what : {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather}) {
          const std::int64_t bytes = account.entries[static_cast<std::size_t>(what)].bytes,
                             after = narrow.axes.at(axis).entries[static_cast<std::size_t>(what)].bytes;
          INFO(word << " rank " << rank << " " << axis << " " << static_cast<int>(what));
          const bool only_gradients = axis == "dp" || axis == "rep" || axis == "ends" || axis == "dp+cp";
          if (only_gradients && what != Collective::all_gather) {
            CHECK(2 * after == bytes);
            halved += bytes;
          } else if (axis != "tp") {  // the tp axis also sums activations, and the cp axis sums only activations
            CHECK(after == bytes);
          } else {
            CHECK(after <= bytes);
            halved += bytes - after;
          }
        }
      CHECK(halved > 0);
      if (layout.sequence)
        CHECK(narrow.axes.at("tp").entries[static_cast<std::size_t>(Collective::all_reduce)].bytes <
              wide.axes.at("tp").entries[static_cast<std::size_t>(Collective::all_reduce)].bytes);
    }
  }
}

float rounded(float value) { return bf16(value); }

using Gradients = std::map<std::string, std::vector<float>>;

// When a parameter's gradient is ready, stores a copy of this rank's sum so far.
class Watching final : public Reducer {
 public:
  Watching(std::unique_ptr<Reducer> inner, Training& training, std::vector<Gradients>& seen)
      : inner_(std::move(inner)), training_(training), seen_(seen) {}
  void begin(std::int64_t micro_batches) override {
    seen_.clear();
    ready_ = 0;
    inner_->begin(micro_batches);
  }
  void ready(const Parameter& parameter) override {
    const std::size_t micro_batch = ready_++ / training_.parameters().size();
    seen_.resize(micro_batch + 1);
    const auto values = parameter.gradient.values<float>();
    seen_[micro_batch][parameter.name].assign(values.begin(), values.end());
    inner_->ready(parameter);
  }
  void finish() override { inner_->finish(); }
  void publish() override { inner_->publish(); }

 private:
  std::unique_ptr<Reducer> inner_;
  Training& training_;
  std::vector<Gradients>& seen_;
  std::size_t ready_ = 0;
};

// Returns element i of the sum, rounded at the same points as on the ranks. `seen` is indexed as seen[rank][micro-batch].
// Each group of `group` neighboring ranks forms a sum first, and then these sums are added.
float sum_of(const std::vector<std::vector<Gradients>>& seen, std::size_t group, bool sums_each, const std::string& name,
             std::size_t i) {
  float all = 0;
  for (std::size_t first = 0; first < seen.size(); first += group) {
    float shard = 0;
    for (std::size_t m = sums_each ? 0 : seen[0].size() - 1; m < seen[0].size(); ++m) {
      float sum = 0;
      for (std::size_t rank = first; rank < first + group; ++rank)
        sum = rounded(sum + rounded(seen[rank][m].at(name)[i]));  // adding to 0 does not round
      shard = rounded(shard + sum);
    }
    all = rounded(all + shard);
  }
  return all;
}

TEST_CASE("each element of a bf16 gradient is that of a reference that rounds every rank's f32 gradient and every sum",
          "[threads]") {
  for (const char* word :
       {"dp1", "dp1.z1", "dp1.z3", "dp2", "dp2.z1", "dp2.z2", "dp2.z3", "dp2.rep2.z1", "dp2.rep2.z2", "dp2.rep2.z3"})
    for (const ReducerKind reducer : {ReducerKind::bucketed, ReducerKind::naive})
      for (const bool in_file : {false, true}) {
        const Layout layout = parse_layout(word, 0);
        if ((layout.zero > 0 && reducer == ReducerKind::naive) || (in_file && layout.zero < 2)) continue;
        const test::TemporaryFolder folder;
        TrainingOptions options = options_of(layout);
        options.replicas.reducer = reducer;
        if (in_file) options.offload = {false, true, false, folder.path().string(), 4096};
        const auto ranks = static_cast<std::size_t>(layout.ranks());
        std::vector<std::vector<Gradients>> seen(ranks);
        std::vector<std::map<std::string, std::map<std::int64_t, float>>> sums(ranks);
        std::vector<double> norms(ranks), tokens(ranks);
        CHECK(test::on_thread_mesh(layout, [&](Mesh mesh, Memory& memory) {
                const auto rank = static_cast<std::size_t>(mesh.world().rank());
                test::Run run(options, std::move(mesh), memory);
                run.training.step(run.read);
                run.training.replace_reducer(
                    [&](auto inner) { return std::make_unique<Watching>(std::move(inner), run.training, seen[rank]); });
                const StepResult result = run.training.step(run.read);
                norms[rank] = result.gradient_norm;
                tokens[rank] = static_cast<double>(result.tokens);
                for (const Bucket& bucket : run.training.buckets().all())
                  run.training.buckets().in_memory(
                      bucket.gradient_shard, Category::grads, Use::read, [&](const Tensor& here) {
                        const std::int64_t first = here.count() * bucket.group->rank();
                        for (const Bucket::Place& place : bucket.places)
                          for (std::int64_t i = 0; i < elements_of(place.parameter->local_shape()); ++i)
                            if (const std::int64_t at = place.first + i - first; at >= 0 && at < here.count())
                              sums[rank][place.parameter->name][i] = here.values<bf16>()[static_cast<std::size_t>(at)];
                      });
                return "";
              }) == "");
        INFO(word << " " << name_of(reducer) << " " << in_file);
        const auto group = static_cast<std::size_t>(layout.replicas() / layout.repeats());
        std::int64_t wrong = 0, count = 0;
        double squares = 0;
        for (std::size_t rank = 0; rank < ranks; ++rank)
          for (const auto& [name, elements] : sums[rank])
            for (const auto& [i, value] : elements) {
              wrong += value != sum_of(seen, group, layout.zero >= 2, name, static_cast<std::size_t>(i));
              if (rank < group) {
                ++count;
                squares += double{value} * value;
              }
            }
        CHECK(wrong == 0);
        CHECK(count > 0);
        CHECK(norms[0] == Approx(std::sqrt(squares) / tokens[0]).epsilon(1e-9));
      }
}

TEST_CASE("with bf16 gradients, losses and norms stay near those with f32 gradients, and copies stay equal", "[threads]") {
  test::Sample fourth(4);
  for (const char* word :
       {"dp1", "dp2", "dp2.z1", "dp4.z2", "dp4.z3", "dp2.tp2.sp", "dp2.tp2.z3.sp", "dp2.pp2", "dp2.pp2.z2", "dp2.pp2.zb-h1",
        "dp2.rep2.z3", "dp2.rep2.z3.hpz", "dp1.cp2", "dp2.ep2", "dp2.ep2.z3"})
    for (const DType compute : {DType::f32, DType::bf16, DType::f16}) {
      if (!fourth.takes()) continue;
      const Layout layout = parse_layout(word, 0);
      const auto seen = [&](std::optional<DType> sums) {
        TrainingOptions options = options_of(layout, sums);
        options.compute = compute;
        if (layout.expert_ranks() > 1) options.shape = test::small_moe(0.75);
        if (compute == DType::f16) {
          options.scaler.dynamic = true;
          options.scaler.scale = 1 << 14;
        }
        return test::seen_on(layout, options, "auto");
      };
      INFO(word << " " << name_of(compute));
      const test::Seen wide = seen({}), narrow = seen(DType::bf16);
      CHECK(difference(wide, seen(DType::f32)) == "");
      CHECK(narrow.steps[0].loss == wide.steps[0].loss);
      CHECK(narrow.steps[0].gradient_norm != wide.steps[0].gradient_norm);
      CHECK(narrow.steps[0].gradient_norm == Approx(wide.steps[0].gradient_norm).epsilon(4e-3));
      CHECK(narrow.steps[2].loss == Approx(wide.steps[2].loss).epsilon(2e-3));
      for (const auto& prints : narrow.prints)
        for (const auto& [name, print] : prints) CHECK(name.find('@') == std::string::npos);
    }
}

TEST_CASE("with bf16 gradients, offloading changes no bit", "[threads]") {
  const test::TemporaryFolder folder;
  for (const char* word : {"dp1.z3", "dp2.z3", "dp2.z2", "dp2.z1", "dp2.rep2.z2", "dp2.tp2.z3.sp", "dp2.pp2.z3"}) {
    const Layout layout = parse_layout(word, 0);
    INFO(word);
    TrainingOptions options = options_of(layout);
    const test::Seen plain = test::seen_on(layout, options, "auto");
    options.offload = {layout.zero == 3, layout.zero >= 2, true, folder.path().string(), 4096};
    CHECK(difference(plain, test::seen_on(layout, options, "auto")) == "");
  }
}

TEST_CASE("the type of gradients cannot be chosen in exact numerics and in f64") {
  const auto refused = [](const char* numerics, DType compute, DType sums) {
    TrainingOptions options = test::options_for(numerics, {});
    options.compute = compute;
    options.replicas.gradient_sums = sums;
    return test::refused([&] { plan_rank({.options = options, .layout = {}}, 0); });
  };
  CHECK_THAT(refused("exact", DType::f32, DType::bf16),
             says("in exact numerics, gradients are integers") && says("grad-dtype is bf16") && says("--numerics fast"));
  CHECK_THAT(refused("fast", DType::f64, DType::f32), says("gradients are f64") && says("--dtype f32"));
  CHECK(refused("fast", DType::f16, DType::bf16) == "accepted");
  CHECK(refused("fast", DType::bf16, DType::f32) == "accepted");
}

}  // namespace
}  // namespace chorale
