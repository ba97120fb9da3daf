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

// Takes snapshots of these steps on every rank. `keepers`: that of each host. Returns the bytes that were sent to buddies.
std::int64_t keep(const std::vector<const KeeperOfTest*>& keepers, const std::vector<int>& hosts,
                  std::vector<KnownState>& states, std::int64_t start, const std::vector<std::int64_t>& steps) {
  const int ranks = static_cast<int>(states.size());
  Exchange exchange(ranks, hosts);
  const std::string failed = on_threads(ranks, [&](ThreadRank& me) {
    const auto rank = static_cast<std::size_t>(me.rank());
    const std::string& line = keepers[hosts.empty() ? 0 : static_cast<std::size_t>(hosts[rank])]->name;
    const Peers peers = exchange.peers(me.rank());
    const std::vector<StateTensor>& state = states[rank].tensors;
    const SnapshotPlan plan = snapshot_plan(state, peers);
    Snapshots snapshots(plan, state, line, start, peers);
    std::int64_t saved = 0;
    for (const StateTensor& tensor : state) saved += tensor.copy.empty() ? tensor.data.bytes() : 0;
    me.check(snapshots.bytes() == saved, "the bytes of a snapshot are wrong");
    for (const std::int64_t step : steps) {
      states[rank].fill(step);
      snapshots.take(state, known_metadata(step));
    }
  });
  CHECK(failed == "");
  return exchange.crossing();
}
std::int64_t keep(const KeeperOfTest& keeper, std::vector<KnownState>& states, std::int64_t start,
                  const std::vector<std::int64_t>& steps) {
  return keep({&keeper}, {}, states, start, steps);
}

// Returns the step that the ranks of a layout load, after checking every element; −1 if there is no snapshot.
std::int64_t loaded(const std::vector<const KeeperOfTest*>& keepers, const std::vector<int>& hosts,
                    std::vector<KnownState> states, std::int64_t oldest = 0) {
  const int ranks = static_cast<int>(states.size());
  Exchange exchange(ranks, hosts);
  std::vector<std::int64_t> steps(states.size(), -1);
  const std::string failed = on_threads(ranks, [&](ThreadRank& me) {
    KnownState& mine = states[static_cast<std::size_t>(me.rank())];
    Log log({.level = "off"});
    KeeperLine line(keepers[hosts.empty() ? 0 : static_cast<std::size_t>(hosts[static_cast<std::size_t>(me.rank())])]->name);
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

std::int64_t loaded(const KeeperOfTest& keeper, std::vector<KnownState> states, std::int64_t oldest = 0) {
  return loaded({&keeper}, {}, std::move(states), oldest);
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
    const auto bytes_of_rank_0 = [&] {
      std::int64_t bytes = 0;
      for (const StateTensor& tensor : states[0].tensors) bytes += tensor.data.bytes();
      return bytes;
    };
    while (bytes_of_rank_0() == 0) states = random_layout(chance, true);
    CHECK(keep(keeper, states, 1, {6, 7}) == 0);
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
  keep(keeper, states, 1, {6, 7});
  KeeperLine line(keeper.name);
  for (const KeptFiles& files : line.take(1, 0))  // rank 0 died while it wrote the snapshot of step 8 over that of step 6
    if (kept_step(files.info.get()) == 6) {
      const std::int64_t incomplete = -1;
      REQUIRE(pwrite(files.info.get(), &incomplete, sizeof incomplete, offsetof(KeptHead, step)) == sizeof incomplete);
    }
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

// The parts of all ranks of a random layout, with copies of some parts on other ranks.
std::vector<KnownState> with_copies(std::vector<KnownState> states, std::mt19937& chance) {
  const std::vector<KnownState> saved = states;
  for (std::size_t from = 0; from < saved.size(); ++from)
    for (const StateTensor& tensor : saved[from].tensors) {
      const std::size_t to = chance() % states.size();
      const auto has_name = [&](const StateTensor& one) { return one.name == tensor.name; };
      if (to == from || chance() % 2 == 0 || std::ranges::any_of(states[to].tensors, has_name)) continue;
      std::size_t which = 0;
      while (known_tensors()[which].name != tensor.name) ++which;
      states[to].add(which, tensor.part);
      states[to].tensors.back().copy = "dp1";
    }
  return states;
}

TEST_CASE("snapshots outlive the loss of any one host") {
  std::mt19937 chance(7);
  int checked = 0;
  for (int round = 0; round < 20; ++round) {
    std::vector<KnownState> states;
    while (states.size() < 2) states = with_copies(random_layout(chance, true), chance);
    const int host_count = std::uniform_int_distribution<int>(2, static_cast<int>(states.size()))(chance);
    std::vector<int> hosts;
    for (std::size_t rank = 0; rank < states.size(); ++rank)
      hosts.push_back(static_cast<int>(rank) < host_count ? static_cast<int>(rank)
                                                          : static_cast<int>(chance() % static_cast<unsigned>(host_count)));
    for (int lost = -1; lost < host_count; ++lost) {
      std::vector<KeeperOfTest> keepers(static_cast<std::size_t>(host_count));
      std::vector<const KeeperOfTest*> all;
      for (const KeeperOfTest& keeper : keepers) all.push_back(&keeper);
      keep(all, hosts, states, 1, {5, 6, 7});
      const KeeperOfTest empty;  // of a host that was lost and came back
      if (lost >= 0) all[static_cast<std::size_t>(lost)] = &empty;
      std::vector<KnownState> next = random_layout(chance, false);
      std::vector<int> next_hosts;
      for (std::size_t rank = 0; rank < next.size(); ++rank)
        next_hosts.push_back((lost + 1 + static_cast<int>(rank)) % host_count);
      const auto is_missing = [&](int host) { return host == lost || std::ranges::count(next_hosts, host) == 0; };
      int missing = 0;  // a host without a rank of the new start is of no use either
      for (int host = 0; host < host_count; ++host) missing += is_missing(host);
      if (missing > 1) continue;
      ++checked;
      CHECK(loaded(all, next_hosts, std::move(next)) == 7);
    }
  }
  CHECK(checked > 20);
}

TEST_CASE("each host checks its own copy of a snapshot") {
  KnownState whole = whole_state();
  std::vector<KnownState> states(2);
  states[0] = std::move(whole);
  const KeeperOfTest one, two;
  keep({&one, &two}, {0, 1}, states, 1, {6, 7});
  std::mt19937 chance(8);
  const auto load = [&] {
    std::vector<KnownState> next;
    while (next.size() < 2) next = random_layout(chance, false);
    std::vector<int> hosts(next.size(), 1);
    hosts[0] = 0;  // this rank alone would find the first copy undamaged
    return loaded({&one, &two}, hosts, std::move(next));
  };
  CHECK(load() == 7);
  damage(two, 1, 7, false);  // the copy on the buddy's host
  CHECK(load() == 6);
}

TEST_CASE("a buddy's copies of parts are not sent") {
  KnownState first, second;
  first.add(0, {});   // 60 f32
  first.add(2, {});   // 17 bf16
  second.add(1, {});  // 60 f64
  second.add(0, {});
  second.tensors.back().copy = "dp1";
  std::vector<KnownState> states(2);
  states[0] = std::move(first);
  states[1] = std::move(second);
  const KeeperOfTest one, two;
  CHECK(keep({&one, &two}, {0, 1}, states, 1, {1, 2, 3}) == 3 * (2 * 17 + 8 * 60));
  CHECK(keep({&one}, {0, 0}, states, 2, {4}) == 0);
}

}  // namespace chorale::test
