// Tests calls that stay in flight while later calls complete, and calls that must not affect later calls. Each of these
// cases once failed on some backend.
#include <cstring>
#include <vector>

#include "tests/collectives/worlds.hpp"

using namespace chorale;
using namespace chorale::test;

namespace {

Slice slice_of(std::vector<float>& values) { return {values.data(), static_cast<std::int64_t>(values.size()), DType::f32}; }

// Message tags and control messages can distinguish only a few successive calls. So a call must wait if a much older call
// has not completed.
std::string many_calls_pass_an_old_one(Communicator& c, bool compared) {
  c.check_calls(compared);
  c.choose(Collective::all_reduce, "ring");
  std::vector<float> large(200000, 1), small(4, 0);
  Request old = c.start_all_reduce(slice_of(large));
  if (c.rank() == c.size() - 1) c.clock().sleep(0.05);
  for (int i = 0; i < 100; ++i) {
    small.assign(4, c.rank() == 0 ? static_cast<float>(i) : -1);
    c.broadcast(slice_of(small), 0);
    if (small != std::vector<float>(4, static_cast<float>(i))) return fmt::format("broadcast {} gave {}", i, small[0]);
  }
  old.wait();
  return large == std::vector<float>(large.size(), static_cast<float>(c.size())) ? "" : "the old sum is wrong";
}

// When a rank gives up a group, all its calls on the group fail, including calls that were in flight together with the
// failed call.
std::string a_group_that_gave_up_ends_all_its_calls(Communicator& c) {
  if (c.size() < 2) return "";
  Communicator group = c.split(0, c.rank());
  std::vector<float> x(100, 1);
  std::string said = "gave up";
  if (c.rank() == 0) {
    Request early = group.start_all_reduce(slice_of(x));
    group.give_up(std::runtime_error("another call failed"));
    said = thrown_by([&] { early.wait(); });
  }
  c.barrier();
  return said.find("gave up") != std::string::npos ? "" : "a call of a group that gave up: " + said;
}

// In MPI, a blocking collective on one rank does not match a nonblocking collective on another. In Chorale, blocking and
// nonblocking collectives must match.
std::string blocking_and_started_calls_meet(Communicator& c) {
  for (const char* algorithm : {"auto", "native"}) {
    if (std::strcmp(algorithm, "native") == 0 && !c.transport().has_native(Collective::all_reduce)) continue;
    c.choose(Collective::all_reduce, algorithm);
    std::vector<float> x(100, 1), y(100, 1);
    Request early = c.start_all_reduce(slice_of(y));
    if (c.rank() % 2 == 0) {
      c.all_reduce(slice_of(x));
      early.wait();
    } else {
      early.wait();
      c.start_all_reduce(slice_of(x)).wait();
    }
    if (x[0] != static_cast<float>(c.size()) || y[99] != x[0]) return fmt::format("{}: {} and {}", algorithm, x[0], y[99]);
  }
  return "";
}

// An empty block has no meaningful address. So a call must not count as in place because of the address of an empty block.
std::string empty_blocks_beside_the_output(Communicator& c) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(c.size()), 0);
  counts[0] = 32;
  std::vector<float> both(64, 7);  // the output, directly followed by the input
  const Slice output{both.data(), 32, DType::f32}, input{both.data() + 32, c.rank() == 0 ? 32 : 0, DType::f32};
  c.all_gather(input, output, counts);
  return both[0] == 7 && both[31] == 7 ? "" : "the block did not arrive";
}

std::string a_refused_call_leaves_the_group_alone(Communicator& c) {
  std::vector<float> own(2, 1), all(2 * static_cast<std::size_t>(c.size()));
  if ((c.size() & (c.size() - 1)) != 0) {
    c.choose(Collective::all_gather, "recursive_doubling");
    const std::string said = thrown_by([&] { c.all_gather(slice_of(own), slice_of(all)); });
    if (said.find("does not fit") == std::string::npos) return "refused with: " + said;
    c.choose(Collective::all_gather, "ring");
  }
  c.clock().sleep(c.rank() == 0 ? 0.02 : 0);  // meanwhile the other ranks check for errors
  c.all_gather(slice_of(own), slice_of(all));
  return all.back() == 1 ? "" : "the next call is wrong";
}

// A bounce buffer is symmetric memory that a backend uses in place of an ordinary buffer. For an in-place call, the bounce
// buffer must be as large as the larger of input and output.
std::string an_uneven_exchange_in_place(Communicator& c) {
  const auto p = static_cast<std::size_t>(c.size());
  std::vector<std::int64_t> given(p, c.rank() == 0 ? 5000 : 3), taken(p, 3);
  taken[0] = 5000;
  std::vector<float> x(5000 * p + 3 * p, static_cast<float>(c.rank()));
  const auto total = [](const std::vector<std::int64_t>& counts) {
    std::int64_t sum = 0;
    for (const std::int64_t count : counts) sum += count;
    return sum;
  };
  // The call would overwrite `fence` if the bounce buffer were too small.
  Buffer fence = c.allocator().allocate(1 << 18, Category::comm);
  std::memset(fence.data(), 1, 1 << 18);
  c.all_to_all({x.data(), total(given), DType::f32}, {x.data(), total(taken), DType::f32}, given, taken);
  for (int i = 0; i < 1 << 18; ++i)
    if (static_cast<const char*>(fence.data())[i] != 1) return "memory beside the bounce buffer was overwritten";
  return x[0] == 0 && x[static_cast<std::size_t>(total(taken)) - 1] == static_cast<float>(p - 1) ? ""
                                                                                                 : "wrong blocks arrived";
}

// In both directions, starts more messages than can be in flight at the same time. The group is destroyed before any rank
// waits for a message.
std::string messages_outlive_the_group(Communicator& c) {
  Communicator part = c.split(c.rank() / 2, c.rank());
  if (part.size() == 1) return "";
  std::vector<std::vector<float>> out(20), in(20);
  std::vector<Request> requests;
  for (std::size_t i = 0; i < 20; ++i) {
    out[i].assign(1 + 300 * i, static_cast<float>(i));
    in[i].assign(out[i].size(), -1);
    requests.push_back(part.start_send(slice_of(out[i]), 1 - part.rank()));
    requests.push_back(part.start_recv(slice_of(in[i]), 1 - part.rank()));
  }
  part = Communicator(nullptr);
  for (Request& request : requests) request.wait();
  return in == out ? "" : "messages differ";
}

const Check in_flight_checks[] = {
    {"many calls pass an old one", [](Communicator& c) { return many_calls_pass_an_old_one(c, true); }},
    {"many calls pass an old one, not compared", [](Communicator& c) { return many_calls_pass_an_old_one(c, false); }},
    {"blocking and started calls meet", blocking_and_started_calls_meet},
    {"empty blocks beside the output", empty_blocks_beside_the_output},
    {"a refused call leaves the group alone", a_refused_call_leaves_the_group_alone},
    {"an uneven exchange in place", an_uneven_exchange_in_place},
    {"messages outlive the group", messages_outlive_the_group},
    {"a group that gave up ends all its calls", a_group_that_gave_up_ends_all_its_calls},
};

// A clock that runs 20 times as fast as real time. With this clock, the time limit of ten minutes expires after thirty
// seconds, so a deadlock is reported soon.
struct HastyClock : SystemClock {
  double seconds() const override { return 20 * SystemClock::seconds(); }
};

// `here` and `there` are two worlds. One after another, the ranks start a call on the world `there`. Then all ranks except
// the last wait in a broadcast on the world `here`. The last rank, which is the root, starts this broadcast only after its
// call on `there` has completed. The call on `there` completes only if the waiting ranks make progress on `there`.
std::string a_wait_here_moves_what_is_there(Communicator& here, Communicator& there) {
  there.choose("ring");
  std::vector<float> x(3000, 1), token(1);
  const bool first = here.rank() == 0, last = here.rank() == here.size() - 1;
  if (!first) here.recv(slice_of(token), here.rank() - 1);
  Request sum = there.start_all_reduce(slice_of(x));
  if (!last) here.send(slice_of(token), here.rank() + 1);
  if (last) sum.wait();
  here.broadcast(slice_of(token), here.size() - 1);
  sum.wait();
  return x == std::vector<float>(3000, static_cast<float>(here.size())) ? "" : "the sum is wrong";
}

}  // namespace

TEST_CASE("a wait on one world makes progress on another world's calls: threads", "[threads]") {
  for (const int size : {2, 3, 4}) {
    ThreadWorld one(size), other(size);
    CHECK(on_threads(size, [&](ThreadRank& me) {
            HastyClock clock;
            Communicator here = open_world(one.transport(me.rank()), clock);
            Communicator there = open_world(other.transport(me.rank()), clock, {.beside = &here});
            const std::string trouble = a_wait_here_moves_what_is_there(here, there);
            me.check(trouble.empty(), "{}", trouble);
          }) == "");
  }
}

TEST_CASE("a wait on one world makes progress on another world's calls: backends", "[spmd]") {
  if (world().size() == 1) return;
  HastyClock clock;
  for (const Backend& one : all_backends())
    for (const Backend& other : all_backends()) {
      if (!joins_all(one) || !joins_all(other)) continue;
      INFO("waiting on " << one.name << " with a call on " << other.name);
      Communicator here = open_world(one.name, world(), clock);
      Communicator there = open_world(other.name, world(), clock, {.beside = &here});
      REQUIRE_ALL(a_wait_here_moves_what_is_there(here, there) == "");
    }
}

TEST_CASE("worlds that are open at the same time may end in any order", "[threads]") {
  ThreadWorld one(2), other(2);
  CHECK(on_threads(2, [&](ThreadRank& me) {
          SystemClock clock;
          Communicator here = open_world(one.transport(me.rank()), clock);
          Communicator there = open_world(other.transport(me.rank()), clock, {.beside = &here});
          here = Communicator(nullptr);
          Communicator part = there.split(0, me.rank());
          float x = 1;
          part.all_reduce({&x, 1, DType::f32});
          me.check(x == 2, "a group of the remaining world sums to {}", x);
        }) == "");
}

TEST_CASE("calls in flight do not disturb other calls on threads", "[threads]") {
  on_thread_worlds(in_flight_checks, {2, 3, 4});
}
TEST_CASE("calls in flight do not disturb other calls on any backend", "[spmd][hosts]") {
  on_every_backend(in_flight_checks);
}
