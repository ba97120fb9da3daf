// Tests expert parallelism. Each row is sent to the rank that has the row's expert, and the result is sent back. Training
// must be bit-identical to a one-rank run.
#include "parallel/experts/experts.hpp"

#include <fmt/ranges.h>

#include <atomic>

#include "parallel/plan/plan.hpp"
#include "parallel/state/resume.hpp"
#include "src/math/routing.hpp"
#include "tests/catch.hpp"
#include "tests/parallel/layouts.hpp"
#include "tests/temporary.hpp"

namespace chorale {
namespace {

// The following tests cover only the exchange. The values of a row are its rank, its expert, its leaf, and its index among
// the rows with the same rank, expert and leaf.

constexpr std::int64_t all_experts = 8, leaves = 2, width = 3;

// The distribution of a rank's rows over experts. In the routings `to_one` and `from_one`, some experts or ranks have no
// rows.
enum class Routing { balanced, uneven, to_one, from_one };

std::int64_t rows_of(Routing routing, std::int64_t rank, std::int64_t expert, std::int64_t leaf) {
  switch (routing) {
    case Routing::balanced: return 3;
    case Routing::uneven: return (rank * 5 + expert * 3 + leaf) % 4;
    case Routing::to_one: return expert == all_experts - 1 ? 10 + rank : 0;
    default: return rank == 0 ? expert + leaf : 0;
  }
}

std::array<float, width> row_of(std::int64_t rank, std::int64_t expert, std::int64_t leaf, std::int64_t number) {
  return {static_cast<float>(rank), static_cast<float>(expert), static_cast<float>(10 * leaf + number)};
}

ExpertRows home_rows(Routing routing, std::int64_t rank) {
  ExpertRows home{.experts = all_experts, .leaves = leaves, .counts = {}};
  for (std::int64_t expert = 0; expert < all_experts; ++expert)
    for (std::int64_t leaf = 0; leaf < leaves; ++leaf) home.counts.push_back(rows_of(routing, rank, expert, leaf));
  return home;
}

// Returns the table `places` for rows that are already sorted by expert.
Tensor in_place(const Tensor& rows, Context& context) {
  const Tensor places = context.typed({rows.dim(0), 1}, DType::i32, Category::workspace);
  if (!places.phantom()) std::iota(places.values<std::int32_t>().begin(), places.values<std::int32_t>().end(), 0);
  return places;
}

std::string wrong_exchange(Axis& axis, Context& context, Routing routing) {
  const ExpertParallel exchange(axis);
  const std::int64_t me = axis.rank(), own = all_experts / axis.size();
  std::vector<float> given, wanted;
  for (std::int64_t expert = 0; expert < all_experts; ++expert)
    for (std::int64_t leaf = 0; leaf < leaves; ++leaf)
      for (std::int64_t i = 0; i < rows_of(routing, me, expert, leaf); ++i)
        for (const float value : row_of(me, expert, leaf, i)) given.push_back(value);
  std::vector<std::int64_t> counts;
  std::int64_t arriving = 0, leaving = 0;  // rows
  for (std::int64_t expert = own * me; expert < own * (me + 1); ++expert)
    for (std::int64_t rank = 0; rank < axis.size(); ++rank)
      for (std::int64_t leaf = 0; leaf < leaves; ++leaf) {
        counts.push_back(rows_of(routing, rank, expert, leaf));
        arriving += rank == me ? 0 : counts.back();
        for (std::int64_t i = 0; i < counts.back(); ++i)
          for (const float value : row_of(rank, expert, leaf, i)) wanted.push_back(value);
      }
  for (std::int64_t expert = 0; expert < all_experts; ++expert)
    for (std::int64_t leaf = 0; leaf < leaves; ++leaf)
      if (expert / own != me) leaving += rows_of(routing, me, expert, leaf);

  const ExpertRows home = home_rows(routing, me), here = exchange.here(home, {}, context);
  if (here.experts != own || here.leaves != axis.size() * leaves || here.counts != counts)
    return fmt::format("the counts of this rank's experts are {}, {} were expected", here.counts, counts);
  const Tensor rows = context.tensor({home.all(), width});
  std::ranges::copy(given, rows.values<float>().begin());
  const Tensor arrived = exchange.dispatch(rows, nullptr, in_place(rows, context), home, here, context);
  if (arrived.dim(0) != here.all() || !std::ranges::equal(arrived.values<float>(), wanted))
    return "the rows of this rank's experts are wrong";
  const Tensor back = exchange.start_combine(arrived, home, here, context)();
  if (back.dim(0) != home.all() || !std::ranges::equal(back.values<float>(), given)) return "the rows did not come back";
  const Account::Entry& sent = axis.account().entries[static_cast<std::size_t>(Collective::all_to_all)];
  const std::int64_t bytes = (leaving + arriving) * width * 4;  // dispatch sends `leaving` rows, and combine sends
                                                                // `arriving` rows
  if (sent.calls != 2 || sent.bytes != bytes)
    return fmt::format("{} bytes were sent in {} calls, {} in 2 were expected", sent.bytes, sent.calls, bytes);
  return "";
}

TEST_CASE("rows travel to the ranks of their experts and back", "[threads]") {
  for (const char* word : {"dp2.ep2", "dp4.ep2", "dp4.ep4", "dp8.ep8", "dp2.tp2.ep2"})
    for (const Routing routing : {Routing::balanced, Routing::uneven, Routing::to_one, Routing::from_one}) {
      INFO(word << ", routing " << static_cast<int>(routing));
      CHECK(test::on_thread_mesh(parse_layout(word, 0), [&](Mesh mesh, Memory& shared) {
              Ledger ledger;
              Allocator memory(shared, ledger);
              const auto numerics = fast_numerics();
              Context context{{.queue = {}, .memory = memory, .numerics = *numerics}};
              return wrong_exchange(mesh.along({"ep"}), context, routing);
            }) == "");
    }
}

// Rank 0 calls start_combine only after it has checked whether rank 1 has returned from start_combine.
TEST_CASE("a rank computes while its rows return, unless it is to wait", "[threads]") {
  for (const bool overlaps : {true, false}) {
    INFO((overlaps ? "overlapped" : "blocking"));
    std::atomic<bool> returned = false;
    CHECK(test::on_thread_mesh(parse_layout("dp2.ep2", 0), [&](Mesh mesh, Memory& shared) -> std::string {
            Ledger ledger;
            Allocator memory(shared, ledger);
            const auto numerics = fast_numerics();
            Context context{{.queue = {}, .memory = memory, .numerics = *numerics}};
            const auto exchange = exchange_of(mesh, {.combine = overlaps ? Combine::overlapped : Combine::blocking});
            const ExpertRows home = home_rows(Routing::uneven, mesh.world().rank()),
                             here = exchange->here(home, {}, context);
            const Tensor rows = context.tensor({here.all(), width});
            std::ranges::fill(rows.values<float>(), 1.0f);
            std::string trouble;
            if (mesh.world().rank() == 0) {
              SystemClock clock;
              for (int looks = 0; looks < (overlaps ? 30000 : 50) && !returned; ++looks) clock.sleep(1e-3);
              if (returned != overlaps) trouble = overlaps ? "rank 1 waits for rank 0" : "rank 1 did not wait";
            }
            const auto back = exchange->start_combine(rows, home, here, context);
            returned = true;
            if (back().dim(0) != home.all()) trouble = "the rows did not come back";
            return trouble;
          }) == "");
  }
}

TEST_CASE("a plan of the exchange counts the bytes of balanced routing", "[threads]") {
  const Layout layout = parse_layout("dp4.ep4", 0);
  CHECK(test::on_thread_mesh(layout, [&](Mesh mesh, Memory& shared) -> std::string {
          const Mesh pretended =
              Mesh::pretended(layout, mesh.world().rank(), {{"", "threads"}}, {}, std::make_shared<const Selector>());
          PhantomMemory phantom;
          Ledger ledger;
          Allocator memory(shared, ledger), nothing(phantom, ledger);
          const auto numerics = fast_numerics();
          Context real{{.queue = {}, .memory = memory, .numerics = *numerics}},
              planned{{.queue = {}, .memory = nothing, .numerics = *numerics}};
          const ExpertRows home = home_rows(Routing::balanced, 0);
          const auto exchange_on = [&](const Mesh& on, Context& context) {
            const ExpertParallel exchange(on.along({"ep"}));
            const ExpertRows here = exchange.here(home, {}, context);
            const Tensor rows = context.tensor({home.all(), width});
            exchange.start_combine(exchange.dispatch(rows, nullptr, in_place(rows, context), home, here, context), home,
                                   here, context)();
          };
          exchange_on(mesh, real);
          exchange_on(pretended, planned);
          const Accounts sent = accounts_of(mesh), foreseen = accounts_of(pretended);
          for (std::size_t i = 0; i < operations; ++i)
            if (sent.at("ep").entries[i] != foreseen.at("ep").entries[i])
              return fmt::format("{}: {} bytes were sent, {} expected", operation_name(i), sent.at("ep").entries[i].bytes,
                                 foreseen.at("ep").entries[i].bytes);
          return "";
        }) == "");
}

// The following tests cover training.

TrainingOptions with_experts(const char* numerics, const Layout& layout) {
  TrainingOptions options = test::options_for(numerics, layout);
  options.shape.experts = {.count = 4, .chosen = 2, .ffn = 24, .shared_ffn = 12, .every = 2, .balance = 0.02, .z = 0.003};
  return options;
}

const char* const words[] = {"dp2.ep2",        "dp4.ep2",           "dp4.ep4",           "dp3.ep1",
                             "dp2.tp2.ep2",    "dp2.tp2.ep2.sp",    "dp2.pp2.ep2",       "dp4.ep2.z1",
                             "dp4.ep2.z2",     "dp4.ep2.z3",        "dp2.ep2.z1",        "dp2.ep2.z2",
                             "dp2.ep2.z3",     "dp2.pp2.ep2.z3",    "dp2.tp2.ep2.z3.sp", "dp4.ep2.pp2.z1",
                             "dp2.tp2.ep2.z2", "dp2.pp2.ep2.gpipe", "dp2.pp2.ep2.zb-h1", "dp4.tp2.ep2.tp-dp"};

TEST_CASE("training with divided experts has the same bits as training on one rank", "[threads]") {
  const test::Seen expected = test::train_alone(with_experts("exact", {}));
  for (const char* word : words) {
    INFO(word);
    const Layout layout = parse_layout(word, 0);
    CHECK(test::on_thread_mesh(layout, [&](Mesh mesh, Memory& memory) {
            return difference(expected, test::train(with_experts("exact", layout), std::move(mesh), memory));
          }) == "");
  }
}

struct Variation {
  const char* about;
  void (*change)(TrainingOptions&);
};

const Variation variations[] = {
    {"full recomputation", [](TrainingOptions& o) { o.recompute = Recompute::full; }},
    {"selective recomputation", [](TrainingOptions& o) { o.recompute = Recompute::selective; }},
    {"several micro-batches", [](TrainingOptions& o) { o.batch.micro = 1; }},
    {"a capacity", [](TrainingOptions& o) { o.shape.experts.capacity = 0.8; }},
    {"balanced routing", [](TrainingOptions& o) { o.shape.experts.routing = ForcedRouting::balanced; }},
    {"uniform routing, several micro-batches",
     [](TrainingOptions& o) {
       o.shape.experts.routing = ForcedRouting::uniform;
       o.batch.micro = 1;
     }},
    {"zipf routing", [](TrainingOptions& o) { o.shape.experts.routing = ForcedRouting::zipf; }},
    {"all tokens to the same experts", [](TrainingOptions& o) { o.shape.experts.routing = ForcedRouting::one; }},
    {"all tokens to the same experts, drops",
     [](TrainingOptions& o) {
       o.shape.experts.routing = ForcedRouting::one;
       o.shape.experts.capacity = 0.5;
     }},
    {"one expert per token, in every block", [](TrainingOptions& o) { o.shape.experts.chosen = o.shape.experts.every = 1; }},
    {"the naive reducer", [](TrainingOptions& o) { o.replicas.reducer = ReducerKind::naive; }},
    {"buckets of one tensor", [](TrainingOptions& o) { o.replicas.bucket_bytes = 1; }},
    {"llama with norms of queries and keys",
     [](TrainingOptions& o) {
       o.shape.family = ModelFamily::llama;
       o.shape.tied = false;
       o.shape.qk_norm = true;
     }},
};

TEST_CASE("training with divided experts has the same bits, whatever the other options are", "[threads]") {
  test::Sample half(2);
  for (const Variation& variation : variations) {
    INFO(variation.about);
    TrainingOptions options = with_experts("exact", {});
    variation.change(options);
    const test::Seen expected = test::train_alone(options);
    for (const char* word : {"dp4.ep2", "dp4.ep4", "dp2.tp2.ep2.sp"}) {
      if (!half.takes()) continue;
      INFO(word);
      const Layout layout = parse_layout(word, 0);
      options = with_experts("exact", layout);
      variation.change(options);
      CHECK(test::on_thread_mesh(layout, [&](Mesh mesh, Memory& memory) {
              return difference(expected, test::train(options, std::move(mesh), memory));
            }) == "");
    }
  }
}

TEST_CASE("a rank stores and saves only its own experts, and every other layout loads them", "[threads]") {
  HostMemory host;
  test::Seen expected = test::Run(with_experts("exact", {}), Mesh(), host).steps(4).seen;
  expected.forget(2);
  std::vector<Layout> layouts;
  for (const char* word : {"dp1", "dp4.ep2.z1", "dp4.ep4", "dp2.tp2.ep2.z3"}) layouts.push_back(parse_layout(word, 0));
  for (const Layout& from : layouts) {
    INFO("saved by " << to_string(from));
    const test::TemporaryFolder folder;
    REQUIRE(test::on_thread_mesh(from, [&](Mesh mesh, Memory& memory) -> std::string {
              test::Run run(with_experts("exact", from), std::move(mesh), memory);
              run.steps(2);
              std::int64_t matrices = 0;
              for (const ParameterPointer& p : run.training.parameters())
                matrices += p->name.find(".expert.") != p->name.npos;
              save_checkpoint(folder, metadata_of(run.training, ""), state_to_save(run.training),
                              peers_of(run.training.mesh()));
              const std::int64_t own = 2 * 2 * 4 / from.expert_ranks();  // blocks × matrices × experts
              return matrices == own ? "" : fmt::format("the rank has {} matrices of experts, not {}", matrices, own);
            }) == "");
    for (const Layout& to : layouts) {
      INFO("loaded by " << to_string(to));
      CHECK(test::on_thread_mesh(to, [&](Mesh mesh, Memory& memory) {
              Log log({.level = "off"});
              test::Run run(with_experts("exact", to), std::move(mesh), memory);
              resume(run.training, Checkpoint::open(folder, log, peers_of(run.training.mesh())));
              return difference(expected, run.steps(2).seen);
            }) == "");
    }
  }
}

TEST_CASE("gradients of experts are summed along edp only, in buckets of their own", "[threads]") {
  const Layout layout = parse_layout("dp4.ep2.z1", 0);
  const PlanRequest request{.options = with_experts("exact", layout),
                            .layout = layout,
                            .backends = {{"", "threads"}},
                            .algorithms = {{"", "auto"}}};
  CHECK(test::on_thread_mesh(layout, [&](Mesh mesh, Memory& memory) -> std::string {
          test::Run run(request.options, std::move(mesh), memory);
          for (const ParameterPointer& p : run.training.parameters()) {
            const bool of_expert = p->name.find(".expert.") != p->name.npos;
            using Names = std::vector<std::string>;
            if (p->summed_over != (of_expert ? Names{"rep", "edp"} : Names{"dp", "rep", "cp"}))
              return fmt::format("the gradient of {} is summed over {}", p->name, p->summed_over);
          }
          clear_accounts(run.training.mesh());
          run.training.step(run.read);
          const Accounts made = accounts_of(run.training.mesh());
          const auto calls = [&](const char* axis, Collective what) {
            return made.at(axis).entries[static_cast<std::size_t>(what)].calls;
          };
          if (calls("edp", Collective::reduce_scatter) == 0 || calls("ep", Collective::all_to_all) == 0)
            return "no calls were made along edp or ep";
          return chorale::difference(plan_rank(request, run.training.mesh().world().rank()).axes, made, false);
        }) == "");
}

}  // namespace
}  // namespace chorale
