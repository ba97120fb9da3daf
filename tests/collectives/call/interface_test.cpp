// Tests the interface for user programs. Buffers of a wrong size must be refused, and calls on an empty communicator must
// fail with a clear error. Every collective must have a nonblocking form. A user can set the time limit of a world, and the
// backend "auto" must open a world.
#include <atomic>
#include <cstdlib>
#include <utility>

#include "tests/collectives/expectation.hpp"
#include "tests/collectives/worlds.hpp"

using namespace chorale;
using namespace chorale::test;

namespace {

std::string other_sizes_are_refused(Communicator& c) {
  const int p = c.size();
  const std::vector<std::int64_t> fives(static_cast<std::size_t>(p), 5);
  std::vector<float> in(static_cast<std::size_t>(11 * p), 1), out(in);
  const auto said = [&](Collective what, std::int64_t input, std::int64_t output, Counts counts = {}) {
    Communicator group = c.split(0, c.rank());
    return thrown_by([&] {
      group.run({what,
                 {in.data(), input},
                 {out.data(), output},
                 Redop::sum,
                 0,
                 counts,
                 what == Collective::all_to_all ? counts : Counts{}});
    });
  };
  const auto wanted = [&](const char* buffer, std::int64_t has, std::int64_t wants) {
    return fmt::format("the {} has {} elements, {} are expected", buffer, has, wants);
  };
  using enum Collective;
  const std::tuple<std::string, std::string, bool> cases[] = {
      // the error's text, its expected words, and whether only the root detects the mistake
      {said(all_gather, 10, 9 * p), wanted("input", 10, 9), false},
      {said(all_gather, 6, 5 * p, fives), wanted("input", 6, 5), false},
      {said(all_reduce, 10, 11), wanted("output", 11, 10), false},
      {said(reduce_scatter, 10 * p, 11), wanted("output", 11, 10), false},
      {said(reduce_scatter, 5 * p + 1, 5, fives), wanted("input", 5 * p + 1, 5 * p), false},
      {said(all_to_all, 10 * p, 10 * p + 1), wanted("output", 10 * p + 1, 10 * p), false},
      {said(all_to_all, 5 * p, 5 * p + 1, fives), wanted("output", 5 * p + 1, 5 * p), false},
      {said(broadcast, 9, 10), wanted("input", 9, 10), true},
      {said(reduce, 10, 11), wanted("output", 11, 10), true},
      {said(gather, 10, 10 * p + 1), wanted("output", 10 * p + 1, 10 * p), true},
      {said(scatter, 10 * p + 1, 10), wanted("input", 10 * p + 1, 10 * p), true},
  };
  for (const auto& [found, words, root_only] : cases)
    if ((c.rank() == 0 || !root_only) && found.find(words) == std::string::npos)
      return fmt::format("missing in the error: {}\n{}", words, found);
  if (p == 1) return "";
  const std::string odd = said(all_to_all, 10 * p + 1, 10 * p + 1);
  const std::string words = fmt::format("{} elements cannot be cut into {} equal blocks", 10 * p + 1, p);
  return odd.find(words) != std::string::npos ? "" : fmt::format("missing in the error: {}\n{}", words, odd);
}

std::string an_empty_communicator_says_so(Communicator& c) {
  Communicator outside = c.split(-1, 0), moved = c.split(0, 0);
  Communicator there = std::move(moved);
  std::vector<float> x(10, 1);
  for (Communicator* empty : {&outside, &moved})
    for (const std::string& said :
         {thrown_by([&] { empty->barrier(); }), thrown_by([&] { (void)empty->size(); }), thrown_by([&] { empty->poll(); }),
          thrown_by([&] { (void)empty->split(0, 0); }), thrown_by([&] {
            (void)empty->start_send({x.data(), 10}, 0);
          })})
      if (!said.starts_with("this communicator is empty\n  it was moved from, or split() was given a negative color"))
        return "on an empty communicator: " + said;
  there.barrier();
  return "";
}

// Starts a call of every collective before waiting for any of them. The arrays of counts are destroyed before the wait.
std::string every_collective_can_be_started(Communicator& c) {
  const int p = c.size();
  std::vector<Trial> trials;
  const auto trial = [&](Collective what, std::int64_t count) -> const Trial& {
    Problem problem = Problem::even(what, count * p, p, p - 1, what == Collective::broadcast);
    problem.rank = c.rank();
    return trials.emplace_back(problem, DType::i32, Redop::sum, c.allocator());
  };
  trials.reserve(16);
  const auto equal = [&](std::int64_t count) { return std::vector<std::int64_t>(static_cast<std::size_t>(p), count); };
  using enum Collective;
  std::vector<Request> requests;
  for (const std::int64_t count : {3, 70000}) {
    const auto& sum = trial(all_reduce, count);
    requests.push_back(c.start_all_reduce(sum.input(), sum.output()));
    const auto& scattered = trial(reduce_scatter, count);
    requests.push_back(c.start_reduce_scatter(scattered.input(), scattered.output(), Redop::sum, equal(count)));
    const auto& gathered = trial(all_gather, count);
    requests.push_back(c.start_all_gather(gathered.input(), gathered.output(), equal(count)));
    requests.push_back(c.start_broadcast(trial(broadcast, count).output(), p - 1));
    const auto& reduced = trial(reduce, count);
    requests.push_back(c.start_reduce(reduced.input(), reduced.output(), p - 1));
    const auto& brought = trial(gather, count);
    requests.push_back(c.start_gather(brought.input(), brought.output(), p - 1, equal(count)));
    const auto& given = trial(scatter, count);
    requests.push_back(c.start_scatter(given.input(), given.output(), p - 1, equal(count)));
    const auto& exchanged = trial(all_to_all, count);
    requests.push_back(c.start_all_to_all(exchanged.input(), exchanged.output(), equal(count), equal(count)));
    requests.push_back(c.start_barrier());
  }
  for (Request& request : requests) request.wait();
  for (const Trial& done : trials)
    if (const std::string wrong = done.trouble(); !wrong.empty()) return wrong;
  return "";
}

constexpr Check interface_checks[] = {
    {"buffers of another size", other_sizes_are_refused},
    {"an empty communicator", an_empty_communicator_says_so},
    {"started forms", every_collective_can_be_started},
};

// A clock that advances only when a thread sleeps. Several threads can share the clock.
class SharedClock final : public Clock {
 public:
  double seconds() const override { return now_; }
  double wall_seconds() const override { return now_; }
  void sleep(double seconds) override { now_ = now_ + seconds; }

 private:
  std::atomic<double> now_{0};
};

// Rank 1 enters a barrier in which rank 0 has waited for `pause` seconds. Returns the error that the barrier throws on rank
// 0.
std::string barrier_after(double pause, const WorldOptions& options) {
  ThreadWorld world(2);
  SharedClock patience;
  std::atomic<bool> over = false;
  std::string said;
  const std::string failed = on_threads(2, [&](ThreadRank& me) {
    SystemClock real;
    Clock& clock = me.rank() == 0 ? static_cast<Clock&>(patience) : real;
    Communicator c = open_world(world.transport(me.rank()), clock, options);
    if (me.rank() == 0) {
      said = thrown_by([&] { c.barrier(); });
      over = true;
    } else {
      while (patience.seconds() < pause && !over) real.sleep(1e-4);
      if (!over) c.barrier();
    }
  });
  return failed.empty() ? said : failed;
}

}  // namespace

TEST_CASE("wrong sizes and empty communicators are refused, and every collective can be started, on threads", "[threads]") {
  on_thread_worlds(interface_checks, {1, 2, 3, 5});
}
TEST_CASE("wrong sizes and empty communicators are refused, and every collective can be started, on every backend",
          "[spmd]") {
  on_every_backend(interface_checks);
}

TEST_CASE("a world's time limit is set by the program, and the environment overrides it", "[threads]") {
  CHECK(barrier_after(700, {}).find("the limit is 600.0 s") != std::string::npos);
  CHECK(barrier_after(700, {.timeout_seconds = 30}).find("the limit is 30.0 s") != std::string::npos);
  CHECK(barrier_after(700, {.timeout_seconds = 2000}) == "nothing");
  CHECK(barrier_after(700, {.timeout_seconds = 0}) == "nothing");
  const auto with_environment = [](const char* value) {
    setenv("CHORALE_TIMEOUT", value, 1);
    const std::string said = barrier_after(700, {.timeout_seconds = 2000});
    unsetenv("CHORALE_TIMEOUT");
    return said;
  };
  CHECK(with_environment("45").find("the limit is 45.0 s\n  a peer is slow, stopped or gone; CHORALE_TIMEOUT=SECONDS") !=
        std::string::npos);
  CHECK(with_environment("0") == "nothing");
  for (const char* nonsense : {"soon", "-1", "5 min", ""})
    CHECK(with_environment(nonsense).find("is not a number of seconds\n  CHORALE_TIMEOUT=") != std::string::npos);
}

TEST_CASE("auto opens a world on one host with the fastest backend", "[spmd]") {
  SystemClock clock;
  Communicator c = open_world("auto", world(), clock);
  const bool right = c.backend() == (joins_here(backend_named("shm"))   ? "shm"
                                     : joins_here(backend_named("ucx")) ? "ucx"
                                                                        : "mpi");
  REQUIRE_ALL(right);
  std::int32_t one = 1;
  c.all_reduce({&one, 1, DType::i32});
  REQUIRE_ALL(one == c.size());
}
