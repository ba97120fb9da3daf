// Ranks that hang or fail on purpose, for tests of the guard (the process that watches the ranks). After some calls, rank
// TEST_VICTIM misbehaves in the way that TEST_HANG names:
//
//   loop      computes forever while the other ranks wait in a call
//   set-up    computes forever while the other ranks wait outside all calls of a communicator
//   lost      never sees a message arrive
//   crossed   makes its calls on two groups in the opposite order of the other ranks
//   fails     stops the launcher, so that it notices the failure late, and then fails; the other ranks see the rank leave
//   aborts    like "fails", except that the rank does not leave the group, so the other ranks wait
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <utility>

#include "tests/collectives/worlds.hpp"

namespace chorale::test {
namespace {

constexpr int calls_before = 20;

// Forwards all calls to an operation of a real transport until `deaf` is true. From then on, no call of this rank ever
// completes.
class DeafOperation final : public Operation {
 public:
  DeafOperation(std::unique_ptr<Operation> inner, const bool& deaf) : inner_(std::move(inner)), deaf_(deaf) {}
  void start(const Run& run) override { inner_->start(run); }
  bool progress() override { return !deaf_ && inner_->progress(); }
  std::uint64_t moved() const override { return inner_->moved(); }
  void examine() override { inner_->examine(); }
  int awaits() override { return inner_->awaits(); }

 private:
  std::unique_ptr<Operation> inner_;
  const bool& deaf_;
};

class DeafGroup final : public Group {
 public:
  DeafGroup(std::unique_ptr<Group> inner, const bool& deaf) : inner_(std::move(inner)), deaf_(deaf) {}
  std::unique_ptr<Operation> prepare(const Plan& plan) override {
    return std::make_unique<DeafOperation>(inner_->prepare(plan), deaf_);
  }
  std::unique_ptr<Group> pair(int from, int to) override { return inner_->pair(from, to); }
  void poison(const std::string& why) noexcept override { inner_->poison(why); }
  void leave() override { inner_->leave(); }

 private:
  std::unique_ptr<Group> inner_;
  const bool& deaf_;
};

class DeafTransport final : public Transport {
 public:
  DeafTransport(std::unique_ptr<Transport> inner, const bool& deaf) : inner_(std::move(inner)), deaf_(deaf) {}
  const char* name() const override { return inner_->name(); }
  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  Memory& memory() override { return inner_->memory(); }
  std::vector<std::int64_t> exchange(std::int64_t mine) override { return inner_->exchange(mine); }
  std::int64_t offer(int members) override { return inner_->offer(members); }
  bool plans_for_all() const override { return inner_->plans_for_all(); }
  std::unique_ptr<Group> join(const Membership& membership) override {
    return std::make_unique<DeafGroup>(inner_->join(membership), deaf_);
  }

 private:
  std::unique_ptr<Transport> inner_;
  const bool& deaf_;
};

[[noreturn]] void compute_for_ever() {
  volatile double x = 1;
  for (;;) x = x * 1.0000001;
}

void hang() {
  const std::string how = needed("TEST_HANG");
  const bool victim = world().rank() == std::stoi(needed("TEST_VICTIM"));
  bool deaf = false;
  SystemClock clock;
  const Backend& backend = backend_named(environment("TEST_BACKEND", "shm"));
  Communicator c = open_world(std::make_shared<DeafTransport>(backend.open(world()), deaf), clock, {.runtime = &world()});
  Communicator other = c.split(0, c.rank());
  std::vector<float> x(1000, 1);
  const Slice slice{x.data(), 1000, DType::f32};
  for (int i = 0; i < calls_before; ++i) {
    c.all_reduce(slice);
    other.all_reduce(slice);
  }
  if (how == "crossed" && victim) {
    other.barrier();
    c.all_reduce(slice);
  }
  if ((how == "loop" || how == "set-up") && victim) compute_for_ever();
  if (how == "set-up") mpi::all_gather(world().world(), 0);
  if ((how == "fails" || how == "aborts") && victim) {
    const Error error(Exit::check, "this rank fails", "on purpose", "");
    kill(getppid(), SIGSTOP);
    if (how == "aborts") world().abort(error);
    throw error;
  }
  deaf = how == "lost" && victim;
  c.all_reduce(slice);
  other.barrier();
}

}  // namespace

// Like a program's main function.
TEST_CASE("a rank hangs as TEST_HANG says", "[.hangs]") try { hang(); } catch (const Error& error) {
  world().abort(error);
}

}  // namespace chorale::test
