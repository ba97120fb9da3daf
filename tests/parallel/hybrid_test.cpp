// Tests hybrid sharding. ZeRO shards among S ranks, and the axis rep repeats such groups R times. With one group (R = 1),
// the layout is plain ZeRO. If each rank has all shards (S = 1), results must be bit-identical to plain data parallelism. In
// exact numerics, every hybrid layout must be bit-identical to a one-rank run.
#include "tests/parallel/hybrid.hpp"

#include "parallel/plan/plan.hpp"
#include "parallel/state/resume.hpp"
#include "tests/temporary.hpp"

namespace chorale {
namespace {

using test::odd_shape, test::seen_on, test::Pretence;

// Renames copies in the results, as in a layout with replicas along the axis rep. For example, "norm.gain@dp1.tp1" becomes
// "norm.gain@rep1.tp1".
test::Seen along_rep(test::Seen seen) {
  for (auto& prints : seen.prints) {
    std::map<std::string, std::uint64_t> renamed;
    for (const auto& [name, print] : prints) {
      const std::size_t copy = name.find("@dp");
      renamed[copy == std::string::npos ? name : name.substr(0, copy) + "@rep" + name.substr(copy + 3)] = print;
    }
    prints = std::move(renamed);
  }
  return seen;
}

// Both layouts have the same buckets only under ZeRO-1. Under ZeRO-2 and 3, a bucket ends with each unit.
TEST_CASE("with shards on one rank, ZeRO-1 has the bits of plain replicas in fast numerics", "[threads]") {
  test::Sample half(2);
  for (const char* algorithm : {"ring", "auto", "recursive_doubling", "direct"})
    for (const char* parts : {"", ".tp2", ".pp2"}) {
      if (!half.takes()) continue;
      const Layout plain = parse_layout(fmt::format("dp4{}", parts), 0);
      const Layout hybrid = parse_layout(fmt::format("dp1.rep4{}.z1", parts), 0);
      INFO(algorithm << " " << to_string(hybrid));
      const auto seen = [&](const Layout& layout) {
        TrainingOptions options = test::hybrid_options("fast", layout);
        options.shape = odd_shape();
        return seen_on(layout, options, algorithm);
      };
      CHECK(difference(along_rep(seen(plain)), seen(hybrid)) == "");
    }
}

// An algorithm that adds every element in the same order gives bit-identical results for any choice of buckets. The last
// bits of the norm depend on the buckets, but without clipping the norm does not affect weights.
TEST_CASE("with shards on one rank, ZeRO-2 and 3 have the weights of plain replicas in fast numerics", "[threads]") {
  for (const char* parts : {"", ".tp2"})
    for (const char* zero : {"z2", "z3"}) {
      const auto seen = [](const Layout& layout) {
        TrainingOptions options = test::hybrid_options("fast", layout, 1);
        options.optimizer.clip = 0;
        return seen_on(layout, options, "recursive_doubling");
      };
      const Layout hybrid = parse_layout(fmt::format("dp1.rep4{}.{}", parts, zero), 0);
      const test::Seen expected = along_rep(seen(parse_layout(fmt::format("dp4{}", parts), 0)));
      test::Seen found = seen(hybrid);
      INFO(to_string(hybrid));
      for (std::size_t i = 0; i < found.steps.size(); ++i) {
        CHECK(found.steps[i].gradient_norm == Approx(expected.steps[i].gradient_norm).epsilon(1e-12));
        found.steps[i].gradient_norm = expected.steps[i].gradient_norm;
      }
      CHECK(difference(expected, found) == "");
    }
}

TEST_CASE("with one group of shards, a hybrid is plain ZeRO") {
  for (const char* zero : {"z1", "z2", "z3"}) {
    const Layout hybrid = parse_layout(fmt::format("dp4.rep1.tp2.{}", zero), 0);
    CHECK(hybrid == parse_layout(fmt::format("dp4.tp2.{}", zero), 0));
    CHECK(with_zero_ranks(hybrid, 4) == hybrid);
    CHECK(Mesh::pretended(hybrid, 3, {}, {}, nullptr).along({"rep"}).size() == 1);
  }
}

TEST_CASE("exact numerics give the bits of one rank on hybrid layouts", "[threads]") {
  const test::Seen expected = test::train_alone(test::hybrid_options("exact", {}));
  test::Sample half(2);
  for (const char* sizes : {"dp2.rep2", "dp2.rep4", "dp4.rep2", "dp1.rep2", "dp2.rep2.tp2", "dp2.rep2.pp2", "dp2.rep2.cp2",
                            "dp1.rep2.cp2", "dp1.rep4.tp2", "dp2.rep2.tp2.rep-dp-tp", "dp2.rep2.tp2.dp-tp-rep"})
    for (const char* zero : {"z1", "z2", "z3"}) {
      if (!half.takes()) continue;
      const Layout layout = parse_layout(fmt::format("{}.{}", sizes, zero), 0);
      INFO(to_string(layout));
      CHECK(difference(expected, seen_on(layout, test::hybrid_options("exact", layout), "auto")) == "");
    }
}

TEST_CASE("exact numerics give the bits of one rank on hybrid layouts that divide experts", "[threads]") {
  const auto with_experts = [](const Layout& layout) {
    TrainingOptions options = test::hybrid_options("exact", layout);
    options.shape = test::small_moe(0.75);
    return options;
  };
  const test::Seen expected = test::train_alone(with_experts({}));
  test::Sample half(2);
  for (const char* sizes : {"dp2.rep2.ep2", "dp4.rep2.ep2", "dp2.rep2.cp2.ep2", "dp2.rep2.tp2.ep2.sp", "dp2.rep2.pp2.ep2"})
    for (const char* zero : {"z1", "z2", "z3"}) {
      if (!half.takes()) continue;
      const Layout layout = parse_layout(fmt::format("{}.{}", sizes, zero), 0);
      INFO(to_string(layout));
      CHECK(difference(expected, seen_on(layout, with_experts(layout), "auto")) == "");
    }
}

TEST_CASE("plain and hybrid layouts resume each other's checkpoints with the same bits", "[threads]") {
  HostMemory host;
  test::Seen expected = test::Run(test::hybrid_options("exact", {}), Mesh(), host).steps(4).seen;
  expected.forget(2);
  for (const auto& [saver, loader] : {std::pair{"dp2.rep2.z3", "dp4.z3"},
                                      {"dp4", "dp2.rep2.z2"},
                                      {"dp2.rep2.tp2.z1", "dp1"},
                                      {"dp1.pp2", "dp2.rep2.pp2.z3"},
                                      {"dp2.rep4.z2", "dp4.rep2.z3"},
                                      {"dp2.rep2.z3.hpz", "dp4"},
                                      {"dp2.rep2.z1", "dp4.rep2.z3.hpz"}}) {
    const test::TemporaryFolder folder;
    const Layout from = parse_layout(saver, 0), to = parse_layout(loader, 0);
    INFO(saver << " to " << loader);
    REQUIRE(test::on_thread_mesh(from, [&](Mesh mesh, Memory& memory) -> std::string {
              test::Run run(test::hybrid_options("exact", from), std::move(mesh), memory);
              run.steps(2);
              save_checkpoint(folder, metadata_of(run.training, ""), state_to_save(run.training),
                              peers_of(run.training.mesh()));
              return "";
            }) == "");
    CHECK(test::on_thread_mesh(to, [&](Mesh mesh, Memory& memory) {
            Log log({.level = "off"});
            test::Run run(test::hybrid_options("exact", to), std::move(mesh), memory);
            resume(run.training, Checkpoint::open(folder, log, peers_of(run.training.mesh())));
            return difference(expected, run.steps(2).seen);
          }) == "");
  }
}

TEST_CASE("over all ranks of a hybrid layout, each element is saved once and counted once") {
  for (const char* word : {"dp2.rep2.z1", "dp2.rep2.z2", "dp4.rep2.z3", "dp1.rep4.z3", "dp2.rep2.tp2.z3", "dp2.rep2.pp2.z2",
                           "dp2.rep2.cp2.z1", "dp2.rep2.z3.hpz", "dp2.rep2.tp2.z3.hpz"}) {
    const Layout layout = parse_layout(word, 0);
    std::map<std::string, std::int64_t> saved, counted, elements;
    for (int rank = 0; rank < layout.ranks(); ++rank) {
      Pretence here(test::hybrid_options("fast", layout), layout, rank);
      for (const Owned& owned : here.training.buckets().owned())
        if (here.training.buckets().copied_along(*owned.parameter) == 0) saved[owned.parameter->name] += owned.count;
      here.training.buckets().each_counted([&](const Parameter& p, const Slice& part) { counted[p.name] += part.count; });
      for (const ParameterPointer& p : here.training.parameters()) elements[p->name] = elements_of(p->shape);
    }
    INFO(word);
    CHECK(saved == elements);
    CHECK(counted == elements);
  }
}

TEST_CASE("with ring, hybrid shards send the bytes of the closed forms, and take those of their shards") {
  for (const auto& [s, r] : {std::pair{2, 2}, {2, 4}, {4, 2}, {3, 2}, {1, 4}, {4, 1}})
    for (int zero = 1; zero < 4; ++zero)
      for (const ModelShape& shape : {test::small_shape(), odd_shape()}) {
        const Layout layout = parse_layout(fmt::format("dp{}.rep{}.z{}", s, r, zero), 0);
        PlanRequest request{.options = test::hybrid_options("fast", layout), .layout = layout};
        constexpr std::int64_t m = 3;  // micro-batches
        request.options.batch.micro = 1;
        request.options.batch.global = m * s * r;
        request.options.shape = shape;
        request.backends = {{"", "threads"}};
        Pretence here(request.options, layout, 0);
        const auto [psi, table] = test::sizes_of(here.training.buckets(), s * r);
        const RankPlan plan = plan_rank(request, 0);
        const auto sent = [&](const char* axis, Collective what) {
          return plan.axes.at(axis).entries[static_cast<std::size_t>(what)].bytes;
        };
        INFO(to_string(layout) << ", width " << shape.width);
        const std::int64_t gathers = zero == 3 ? m * 2 * (psi + table) : psi, scatters = zero == 1 ? psi : m * psi;
        CHECK(sent("dp", Collective::all_gather) == 4 * gathers * (s - 1) / s);
        CHECK(sent("dp", Collective::reduce_scatter) == 4 * scatters * (s - 1) / s);
        CHECK(sent("rep", Collective::all_reduce) == 4 * 2 * (psi / s) * (r - 1) / r);
        std::int64_t all = 0;
        for (const char* axis : {"dp", "rep", "dp+rep"})
          if (plan.axes.contains(axis))
            for (const Account::Entry& entry : plan.axes.at(axis).entries) all += entry.bytes;
        CHECK(all == 4 * (gathers + scatters) * (s - 1) / s + 4 * 2 * (psi / s) * (r - 1) / r);
        const auto held = [&](Category c) { return plan.held[static_cast<std::size_t>(c)]; };
        CHECK(held(Category::params) == 4 * (zero == 3 ? psi / s : psi));
        CHECK(held(Category::grads) == 4 * (zero >= 2 ? psi / s : psi));
        if (psi == plan.parameters) CHECK(held(Category::optimizer) == 8 * psi / s);  // the state has no padding
      }
}

TEST_CASE("the ranks among which ZeRO shards share a host, and only the sums of shards cross hosts") {
  const Layout layout = parse_layout("dp4.rep2.z3", 0);
  PlanRequest request{.options = test::hybrid_options("fast", layout), .layout = layout};
  request.hosts = {0, 0, 0, 0, 1, 1, 1, 1};
  request.backends = {{"", "threads"}};
  for (int rank = 0; rank < 8; ++rank) {
    const RankPlan plan = plan_rank(request, rank);
    for (const Account::Entry& entry : plan.axes.at("dp").entries) CHECK(entry.crossing == 0);
    const Account::Entry& sums = plan.axes.at("rep").entries[static_cast<std::size_t>(Collective::all_reduce)];
    CHECK((sums.bytes > 0 && sums.crossing == sums.bytes));
  }
}

}  // namespace
}  // namespace chorale
