// Checks snapshots in memory: any layout continues from what any layout kept, damaged and incomplete snapshots are skipped.
#include "parallel/state/snapshot.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <random>

#include "tests/parallel/state/saved_state.hpp"
#include "tests/spmd.hpp"

namespace chorale::test {
namespace {

struct KeeperOfTest {
  std::string name = fmt::format("snapshots-{}-{}", getpid(), ++count);
  pid_t process = Keeper::start(name);
  KeeperOfTest() { REQUIRE(process > 0); }
  ~KeeperOfTest() {
    kill(process, SIGKILL);
    waitpid(process, nullptr, 0);
  }
  static inline int count = 0;
};

// The parts of all ranks of a random layout. While `saving`, a rank has at most one part of each tensor.
std::vector<KnownState> random_layout(std::mt19937& chance, bool saving) {
  std::vector<KnownState> states(static_cast<std::size_t>(std::uniform_int_distribution<int>(1, 5)(chance)));
  for (std::size_t t = 0; t < known_tensors().size(); ++t) {
    const auto cover = random_cover(known_tensors()[t].shape, chance);
    for (std::size_t part = 0; part < cover.size(); ++part) {
      while (saving && part >= states.size()) states.emplace_back();
      states[part % states.size()].add(t, cover[part]);
    }
  }
  return states;
}

// Takes snapshots of these steps on every rank, one after the other.
std::vector<std::unique_ptr<Snapshots>> keep(const KeeperOfTest& keeper, std::vector<KnownState>& states, std::int64_t start,
                                             const std::vector<std::int64_t>& steps) {
  std::vector<std::unique_ptr<Snapshots>> ranks;
  for (std::size_t rank = 0; rank < states.size(); ++rank) {
    KeeperLine line(keeper.name);
    const Peers peers{.rank = static_cast<int>(rank), .size = static_cast<int>(states.size())};
    ranks.push_back(std::make_unique<Snapshots>(states[rank].tensors, line, start, peers));
    for (const std::int64_t step : steps) {
      states[rank].fill(step);
      ranks.back()->take(states[rank].tensors, known_metadata(step));
    }
  }
  return ranks;
}

// Returns the step that the ranks of a layout load, after checking every element; −1 if there is no snapshot.
std::int64_t loaded(const KeeperOfTest& keeper, std::vector<KnownState> states, std::int64_t oldest = 0) {
  const int ranks = static_cast<int>(states.size());
  Exchange exchange(ranks);
  std::vector<std::int64_t> steps(states.size(), -1);
  const std::string failed = on_threads(ranks, [&](ThreadRank& me) {
    KnownState& mine = states[static_cast<std::size_t>(me.rank())];
    Log log({.level = "off"});
    KeeperLine line(keeper.name);
    const auto found = newest_snapshot(line, oldest, exchange.peers(me.rank()), log);
    if (!found) return;
    found->read(mine.tensors);
    const std::int64_t step = found->metadata().step;
    steps[static_cast<std::size_t>(me.rank())] = step;
    me.check(mine.wrong(step) == 0, "an element differs");
  });
  CHECK(failed == "");
  for (const std::int64_t step : steps) CHECK(step == steps[0]);
  return steps[0];
}

// Changes a byte in a file of rank 0's generation with this step.
void damage(const KeeperOfTest& keeper, std::int64_t start, std::int64_t step, bool in_info) {
  KeeperLine line(keeper.name);
  for (const KeptFiles& files : line.take(start, 0)) {
    if (kept_step(files.info.get()) != step) continue;
    const int file = (in_info ? files.info : files.image).get();
    const off_t at = in_info ? static_cast<off_t>(sizeof(KeptHead)) + 20 : lseek(file, 0, SEEK_END) - 1;
    char byte = 0;
    REQUIRE(pread(file, &byte, 1, at) == 1);
    byte ^= 1;
    REQUIRE(pwrite(file, &byte, 1, at) == 1);
    return;
  }
  FAIL("rank 0 has not kept this step");
}

}  // namespace

TEST_CASE("any layout continues from what any layout kept in memory") {
  std::mt19937 chance(3);
  for (int round = 0; round < 15; ++round) {
    const KeeperOfTest keeper;
    std::vector<KnownState> states = random_layout(chance, true);
    keep(keeper, states, 1, {5, 6, 7});  // the ranks are gone now, as after a death
    CHECK(loaded(keeper, random_layout(chance, false)) == 7);
    CHECK(loaded(keeper, random_layout(chance, false), 7) == 7);
    CHECK(loaded(keeper, random_layout(chance, false), 8) == -1);  // a checkpoint on the disk is newer
  }
}

TEST_CASE("a damaged snapshot is skipped for the older one, then there is none") {
  for (const bool in_info : {false, true}) {
    std::mt19937 chance(4);
    const KeeperOfTest keeper;
    std::vector<KnownState> states = random_layout(chance, true);
    while (Snapshots::bytes_of(states[0].tensors) == 0) states = random_layout(chance, true);
    const auto ranks = keep(keeper, states, 1, {6, 7});
    CHECK(ranks[0]->bytes() * kept_generations == Snapshots::bytes_of(states[0].tensors));
    damage(keeper, 1, 7, in_info);
    CHECK(loaded(keeper, random_layout(chance, false)) == 6);
    damage(keeper, 1, 6, in_info);
    CHECK(loaded(keeper, random_layout(chance, false)) == -1);
  }
}

TEST_CASE("a step that one rank has not kept is not used") {
  std::mt19937 chance(5);
  const KeeperOfTest keeper;
  std::vector<KnownState> states = random_layout(chance, true);
  while (states.size() < 2) states = random_layout(chance, true);
  auto ranks = keep(keeper, states, 1, {6, 7});
  states[0].fill(8);
  ranks[0]->take(states[0].tensors, known_metadata(8));  // the others die before their snapshot of step 8
  CHECK(loaded(keeper, random_layout(chance, false)) == 7);
  ranks.clear();
  CHECK(loaded(keeper, random_layout(chance, false)) == 7);
}

TEST_CASE("the newest start wins, and a start without a complete step does not hide the one before") {
  std::mt19937 chance(6);
  const KeeperOfTest keeper;
  std::vector<KnownState> first = random_layout(chance, true), second = random_layout(chance, true);
  keep(keeper, first, 1, {6, 7});
  keep(keeper, second, 2, {});
  CHECK(loaded(keeper, random_layout(chance, false)) == 7);
  keep(keeper, second, 3, {8});
  CHECK(loaded(keeper, random_layout(chance, false)) == 8);
}

}  // namespace chorale::test
