// Checks the order of events when a rank gives up a group. The rank abandons its calls, sends an error (the poison) to the
// other ranks, and leaves the group. The operations and groups in this file are stubs that only record calls to their member
// functions.
#include "collectives/call/abandoned_operations.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

#include "collectives/call/communicator.hpp"
#include "src/base/error.hpp"
#include "src/memory/memory.hpp"
#include "tests/catch.hpp"

using namespace chorale;

namespace {

using Said = std::vector<std::string>;

struct Failed final : Operation {
  Failed(Said& s, int w, int r) : said(s), writes(w), reads(r) {}
  ~Failed() override { said.push_back("freed"); }
  void start(const Run&) override {}
  bool progress() override { return false; }
  void abandon() noexcept override { said.push_back("abandon"); }
  bool may_be_written() noexcept override { return answer(writes, "written"); }
  bool may_be_read() noexcept override { return answer(reads, "read"); }
  bool answer(int& times, const char* what) {
    if (times == 0) return false;
    --times;
    said.push_back(what);
    return true;
  }
  Said& said;
  int writes, reads;  // how many times may_be_written() and may_be_read() still return true
};

struct Peers final : Group {
  explicit Peers(Said& s) : said(s) {}
  std::unique_ptr<Operation> prepare(const Plan&) override { return nullptr; }
  std::unique_ptr<Group> pair(int, int) override { return nullptr; }
  void poison(const std::string& why) noexcept override { said.push_back("poison: " + why); }
  void close() noexcept override { said.push_back("close"); }
  Said& said;
};

// An operation of DoomedGroup. The group's first operation fails once the second one has been polled.
struct Doomed final : Operation {
  Doomed(Said& s, int n, int& o) : said(s), name(std::to_string(n)), others(o) {}
  void start(const Run&) override {}
  bool progress() override {
    said.push_back("progress " + name);
    if (name == "2") ++others;
    if (name == "1" && others > 0) throw std::runtime_error("wrong");
    return false;
  }
  void abandon() noexcept override { said.push_back("abandon " + name); }
  Said& said;
  std::string name;
  int& others;
};

struct DoomedGroup final : Group {
  explicit DoomedGroup(Said& s) : said(s) {}
  std::unique_ptr<Operation> prepare(const Plan&) override { return std::make_unique<Doomed>(said, ++made, others); }
  std::unique_ptr<Group> pair(int, int) override { return nullptr; }
  void poison(const std::string&) noexcept override { said.push_back("poison"); }
  void close() noexcept override { said.push_back("close"); }
  Said& said;
  int made = 0, others = 0;
};

// A transport that acts as rank 0 of a world of two ranks. There is no rank 1.
struct Half final : Transport {
  explicit Half(Said& s) : said(s) {}
  const char* name() const override { return "mpi"; }
  int rank() const override { return 0; }
  int size() const override { return 2; }
  Memory& memory() override { return host; }
  std::vector<std::int64_t> exchange(std::int64_t mine) override { return {mine, mine}; }
  std::unique_ptr<Group> join(const Membership&) override { return std::make_unique<DoomedGroup>(said); }
  Said& said;
  HostMemory host;
};

}  // namespace

TEST_CASE("a rank closes its group when peers no longer write its memory, and returns when they no longer read it",
          "[mapped]") {
  Said said;
  Peers peers(said);
  VirtualClock clock;
  {
    AbandonedOperations abandoned;
    abandoned.add(std::make_unique<Failed>(said, 2, 2));
    abandoned.let_go(peers, clock, "why", [] { return false; });
    CHECK(said == Said{"abandon", "poison: why", "written", "written", "close", "read", "read"});
  }
  CHECK(said.back() == "freed");
}

TEST_CASE("a rank does not wait for peers that are dead", "[mapped]") {
  Said said;
  Peers peers(said);
  VirtualClock clock;
  // The pointer keeps leak detectors from reporting the intended leak: a dead peer says nothing, so its reads never end.
  [[maybe_unused]] static Operation* volatile in_memory_for_good = nullptr;
  auto failed = std::make_unique<Failed>(said, 1 << 30, 1 << 30);
  in_memory_for_good = failed.get();
  AbandonedOperations abandoned;
  abandoned.add(std::move(failed));
  abandoned.let_go(peers, clock, "why", [&] { return clock.seconds() > 0.5; });
  CHECK(clock.seconds() < 1);
}

TEST_CASE("memory that peers may still read at the time limit is never freed", "[mapped]") {
  Said said;
  Peers peers(said);
  VirtualClock clock;
  {
    AbandonedOperations abandoned;
    // This leak is intended. The pointer keeps leak detectors from reporting the leak.
    [[maybe_unused]] static Operation* volatile in_memory_for_good = nullptr;
    auto failed = std::make_unique<Failed>(said, 0, 1 << 30);
    in_memory_for_good = failed.get();
    abandoned.add(std::move(failed));
    abandoned.let_go(peers, clock, "why", [] { return false; });
    CHECK(clock.seconds() < 10);
  }
  CHECK(said.back() != "freed");
}

TEST_CASE("a rank whose memory may still be written at the time limit ends itself", "[mapped]") {
  Said said;
  Peers peers(said);
  VirtualClock clock;
  const pid_t child = fork();
  if (child == 0) {
    if (!std::freopen("/dev/null", "w", stderr)) _exit(99);
    AbandonedOperations abandoned;
    abandoned.add(std::make_unique<Failed>(said, 1 << 30, 0));
    abandoned.let_go(peers, clock, "why", [] { return false; });
    _exit(0);  // never reached
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == static_cast<int>(Exit::runtime));
}

TEST_CASE("when a call fails, the other calls in flight are abandoned before the rank closes", "[mapped]") {
  Said said;
  VirtualClock clock;
  float x[] = {1, 1}, y[] = {1, 1};
  {
    Communicator group = open_world(std::make_shared<Half>(said), clock);
    Request early = group.start({Collective::all_reduce, {x, 2, DType::f32}, {x, 2, DType::f32}});
    said.clear();
    CHECK_THROWS_WITH(group.all_reduce({y, 2, DType::f32}), says("gave up"));
    CHECK_THROWS_WITH(early.wait(), says("wrong"));
  }
  CHECK(said == Said{"progress 2", "progress 1", "abandon 1", "abandon 2", "poison", "close"});
}
