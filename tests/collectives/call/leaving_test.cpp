// Tests ranks that leave a group early. A rank that waits for a rank that has left gets an error. The error names the rank
// that has left, or a rank that gave up as a consequence. Data that a rank sent before it left still arrive.
#include <sched.h>

#include <vector>

#include "tests/collectives/worlds.hpp"

using namespace chorale;
using namespace chorale::test;

namespace {

Slice whole(std::vector<float>& values) { return {values.data(), static_cast<std::int64_t>(values.size()), DType::f32}; }

// The group's last rank, whose world rank is `leaver`, leaves the group. The other ranks make the call, which must fail. The
// error must say that `leaver` has left or that another rank gave up. Returns "" if the error says so, otherwise the error.
template <class Make>
std::string without_the_last(Communicator& group, int leaver, Make&& call) {
  if (group.rank() == group.size() - 1) {
    group.barrier();
    group = Communicator(nullptr);
    return "";
  }
  // A slow rank may still be in the barrier when another rank gives up in the call after the barrier.
  const std::string said = thrown_by([&] {
    group.barrier();
    call();
  });
  const std::string words = fmt::format("rank {} has left a group in which other ranks still make calls", leaver);
  return said.find(words) != std::string::npos || said.find("gave up") != std::string::npos ? "" : said;
}

std::string the_world(Communicator& c) {
  std::vector<float> x(100, 1);
  if (c.size() == 1) return "";
  return without_the_last(c, c.size() - 1, [&] { c.all_reduce(whole(x)); });
}

std::string a_started_call(Communicator& c) {
  std::vector<float> x(100, 1), all(100 * static_cast<std::size_t>(c.size()));
  if (c.size() == 1) return "";
  return without_the_last(c, c.size() - 1, [&] { c.start_all_gather(whole(x), whole(all)).wait(); });
}

// A caller that only polls with test() and never waits gets the error too. Without an error, the loop ends after 30 seconds.
std::string a_tested_call(Communicator& c) {
  std::vector<float> x(100, 1);
  if (c.size() == 1) return "";
  return without_the_last(c, c.size() - 1, [&] {
    SystemClock clock;
    Request sum = c.start_all_reduce(whole(x));
    for (const double until = clock.seconds() + 30; !sum.test() && clock.seconds() < until;) sched_yield();
  });
}

std::string a_group(Communicator& c) {
  if (c.size() == 1) return "";
  Communicator group = c.split(0, -c.rank());  // reversed, so that group ranks differ from world ranks
  std::vector<float> x(100, 1);
  const std::string trouble = without_the_last(group, 0, [&] { group.broadcast(whole(x), group.size() - 1); });
  c.barrier();  // the world still works
  return trouble;
}

std::string a_message(Communicator& c) {
  if (c.size() == 1) return "";
  Communicator group = c.split(0, c.rank());
  std::vector<float> x(100, 1);
  const std::string trouble = without_the_last(group, c.size() - 1, [&] { group.recv(whole(x), group.size() - 1); });
  c.barrier();
  return trouble;
}

// The other ranks receive only after the last rank has left. The receiving ranks must get the data that the last rank sent,
// not an error.
std::string what_was_sent_arrives(Communicator& c) {
  if (c.size() == 1) return "";
  Communicator group = c.split(0, c.rank());
  const int last = c.size() - 1;
  std::vector<float> x(10, static_cast<float>(c.rank())), y(10, -1);
  if (c.rank() == last) {
    group.broadcast(whole(x), last);
    for (int to = 0; to < last; ++to) group.send(whole(x), to);
    group = Communicator(nullptr);
    for (int to = 0; to < last; ++to) c.send(whole(x), to);
    return "";
  }
  c.recv(whole(x), last);  // the last rank sends this after it has left the group
  x.assign(10, -1);
  group.broadcast(whole(x), last);
  group.recv(whole(y), last);
  return x[0] == static_cast<float>(last) && y == x ? "" : fmt::format("{} and {} arrived", x[0], y[0]);
}

constexpr Check leaving_checks[] = {{"a rank leaves the world", the_world},
                                    {"a rank leaves before a call that is started", a_started_call},
                                    {"a rank leaves before a call that is tested", a_tested_call},
                                    {"a rank leaves a group", a_group},
                                    {"a rank leaves before it sends", a_message},
                                    {"a rank sends and leaves", what_was_sent_arrives}};

}  // namespace

TEST_CASE("a rank that waits for one that has left gets an error: threads", "[threads]") {
  on_thread_worlds(leaving_checks, {2, 3, 5});
}
TEST_CASE("a rank that waits for one that has left gets an error: backends", "[spmd]") { on_every_backend(leaving_checks); }

// Run by leaving_test.py. In the last call, a broadcast, each rank names itself as the root, so no rank waits.
TEST_CASE("the last call is a broadcast from a different root on each rank", "[.last-broadcast]") {
  SystemClock clock;
  Communicator c = open_world(environment("TEST_BACKEND", "shm"), world(), clock);
  Communicator group = c.split(0, 0);
  std::vector<float> x(4, 1);
  (environment("TEST_GROUP", "").empty() ? c : group).broadcast(whole(x), c.rank());
}
