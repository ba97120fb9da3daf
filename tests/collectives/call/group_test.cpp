// Tests features of a Communicator other than correct sums: groups, messages between two ranks, many calls in flight, moved
// requests and counted traffic. An error in one group must not affect other groups.
#include <algorithm>
#include <numeric>
#include <optional>

#include "tests/collectives/expectation.hpp"
#include "tests/collectives/schedule/planning.hpp"
#include "tests/collectives/worlds.hpp"
#include "tests/sample.hpp"

using namespace chorale;
using namespace chorale::test;

namespace {

// Returns the world ranks of the group's members, found with an all_gather on the group.
std::vector<std::int32_t> members_of(Communicator& group, int world_rank) {
  std::int32_t mine = world_rank;
  std::vector<std::int32_t> all(static_cast<std::size_t>(group.size()));
  group.all_gather({&mine, 1, DType::i32}, {all.data(), group.size(), DType::i32});
  return all;
}

std::string groups_by_color_and_key(Communicator& c) {
  const int p = c.size(), rank = c.rank();
  for (int again = 0; again < 20; ++again) {
    const bool outside = rank % 3 == 2;
    Communicator group = c.split(outside ? -1 : rank % 3, -rank);  // the highest rank comes first
    if (static_cast<bool>(group) == outside) return "a negative color got a group, or another color got none";
    std::vector<std::int32_t> wanted;
    for (int r = p - 1; r >= 0; --r)
      if (r % 3 == rank % 3) wanted.push_back(r);
    if (outside) continue;
    if (members_of(group, rank) != wanted) return "a group has other members than its color, or in another order";
    const int half = group.rank() < (group.size() + 1) / 2 ? 0 : 1;
    Communicator part = group.split(half, 0);  // with equal keys, members are ordered by rank
    const auto middle = wanted.begin() + (group.size() + 1) / 2;
    if (members_of(part, rank) != (half == 0 ? std::vector(wanted.begin(), middle) : std::vector(middle, wanted.end())))
      return "a group of a group has other members than its color";
    std::int32_t one = 1, sum = 0;  // the parent still works
    group.all_reduce({&one, 1, DType::i32}, {&sum, 1, DType::i32});
    if (sum != group.size()) return "a group that was split sums wrongly";
  }
  return "";
}

// Rank r is on a simulated host with number r / 2. A group must know the hosts of its ranks. The group lists one host per
// rank, in rank order, and numbers its hosts from 0.
std::string groups_know_hosts(Communicator& c) {
  const int p = c.size(), last = (p - 1) / 2;
  std::vector<int> hosts, backwards;
  for (int r = 0; r < p; ++r) {
    hosts.push_back(r / 2 + 4);
    backwards.push_back(last - (p - 1 - r) / 2);
  }
  c.pretend_hosts(hosts);
  if (c.split(c.rank() / 2, 0).hosts() != std::vector<int>{}) return "ranks of one host are on several";
  if (c.split(0, -c.rank()).hosts() != (last == 0 ? std::vector<int>{} : backwards)) return "a group has other hosts";
  if (thrown_by([&] { c.pretend_hosts(std::vector<int>(9)); }).find("hosts of 9 ranks") == std::string::npos)
    return "hosts of another number of ranks are accepted";
  c.pretend_hosts({});
  return c.hosts().empty() ? "" : "hosts stay after they are given up";
}

// Message number `i` from one rank to another. Size and values identify the message.
std::vector<std::int32_t> message(int from, int to, int i) {
  constexpr std::size_t sizes[] = {1, 5000, 3, 0, 200000, 17};
  std::vector<std::int32_t> values(sizes[static_cast<std::size_t>(i)]);
  std::iota(values.begin(), values.end(), from * 1000 + to * 100 + i);
  return values;
}
Slice slice(std::vector<std::int32_t>& values) {
  return {values.data(), static_cast<std::int64_t>(values.size()), DType::i32};
}

std::string messages_in_flight(Communicator& c) {
  const int p = c.size(), rank = c.rank(), messages = 6;
  std::vector<std::vector<std::int32_t>> sent, got;
  std::vector<std::vector<std::int32_t>> wanted;
  for (int peer = 0; peer < p; ++peer)
    for (int i = 0; i < messages && peer != rank; ++i) {
      sent.push_back(message(rank, peer, i));
      wanted.push_back(message(peer, rank, i));
      got.emplace_back(wanted.back().size());
    }
  std::vector<Request> requests;
  for (int peer = 0, at = 0; peer < p; ++peer)
    for (int i = 0; i < messages && peer != rank; ++i, ++at) {
      requests.push_back(c.start_send(slice(sent[static_cast<std::size_t>(at)]), peer));
      requests.push_back(c.start_recv(slice(got[static_cast<std::size_t>(at)]), peer));
    }
  c.barrier();  // unfinished messages do not delay later calls
  std::rotate(requests.begin(), requests.begin() + rank, requests.end() - rank);
  for (Request& request : requests) request.wait();
  return got == wanted ? "" : "messages arrived out of order or with wrong contents";
}

// The receiver calls recv() only after the sender has dropped its communicator of the group.
std::string a_message_outlives_its_group(Communicator& c) {
  if (c.size() < 2) return "";
  for (const std::size_t count : {std::size_t{4}, std::size_t{300000}}) {
    std::vector<std::int32_t> values(count, 7);
    std::optional<Communicator> group(c.split(0, 0));
    std::optional<Request> sending;
    if (c.rank() == 0) {
      sending = group->start_send(slice(values), 1);
      group.reset();
    }
    c.barrier();
    if (c.rank() == 1) {
      values.assign(count, 0);
      group->recv(slice(values), 0);
    }
    group.reset();
    if (sending) sending->wait();
    c.barrier();
    if (values != std::vector<std::int32_t>(count, 7)) return "a message from a dropped group is lost";
  }
  return "";
}

std::string many_in_flight(Communicator& c) {
  for (const int calls : {20, 100}) {
    std::vector<Trial> trials;
    std::vector<Request> requests;
    for (int i = 0; i < calls; ++i) {
      Problem problem = Problem::even(i % 3 == 2 ? Collective::all_gather : Collective::all_reduce, 1 + i % 13 * 700,
                                      c.size(), 0, i % 2 == 0);
      problem.rank = c.rank();
      trials.emplace_back(problem, DType::i32, Redop::sum, c.allocator());
      requests.push_back(c.start(trials.back().call()));
    }
    std::int32_t one = 1, sum = 0;
    c.all_reduce({&one, 1, DType::i32}, {&sum, 1, DType::i32});  // works while the other calls are in flight
    if (sum != c.size()) return "a call beside many in flight sums wrongly";
    std::rotate(requests.begin(), requests.begin() + (c.rank() * 7) % calls, requests.end());  // order differs by rank
    for (Request& request : requests) request.wait();
    for (const Trial& trial : trials)
      if (const std::string wrong = trial.trouble(); !wrong.empty()) return wrong;
  }
  return "";
}

std::string requests_move(Communicator& c) {
  Request nothing;
  nothing.wait();
  if (!nothing.test()) return "an empty request is not over";
  std::vector<std::int32_t> a(500, 1), b(90000, 1), d(3, 1);
  {
    Request first = c.start_all_reduce(slice(a));
    Request second = c.start_all_reduce(slice(b));
    Request moved(std::move(first));
    if (!first.test()) return "a request that was moved from is still in flight";  // tests use after move
    second = std::move(moved);                                                     // both calls must complete
    second.wait();
    if (a.front() != c.size()) return "a request that was moved did not wait";
    Request dropped = c.start_all_reduce(slice(d));
  }  // the destructors of the remaining requests wait
  const auto all = [&](const std::vector<std::int32_t>& x) {
    return std::ranges::all_of(x, [&](std::int32_t value) { return value == c.size(); });
  };
  return all(a) && all(b) && all(d) ? "" : "a request that was dropped did not wait";
}

std::string traffic_is_what_schedules_say(Communicator& c) {
  std::vector<std::int32_t> x(10000, 1), y(10000);
  for (const Algorithm& algorithm : all_algorithms()) {
    if (algorithm.what != Collective::all_reduce && algorithm.what != Collective::broadcast) continue;
    c.choose(algorithm.what, algorithm.name, 3);
    for (const std::int64_t count : {0, 1, 1234, 10000}) {
      const bool in_place = algorithm.what == Collective::broadcast && count > 0;
      Problem problem = Problem::even(algorithm.what, count, c.size(), 0, in_place, c.hosts());
      problem.rank = c.rank();
      const Traffic before = c.traffic();
      c.run({algorithm.what, {x.data(), count, DType::i32}, {in_place ? x.data() : y.data(), count, DType::i32}});
      const std::int64_t bytes = c.traffic().bytes_sent - before.bytes_sent;
      const std::int64_t wanted = 4 * algorithm.plan(problem).elements_sent();
      if (bytes != wanted || c.traffic().calls != before.calls + 1)
        return fmt::format("{} {} of {} sent {} bytes, expected {}", name_of(algorithm.what), algorithm.name, count, bytes,
                           wanted);
    }
  }
  if (!c.transport().has_native(Collective::all_reduce)) return "";
  c.choose(Collective::all_reduce, "native");
  c.all_reduce(slice(x), Redop::max);
  return c.traffic().bytes_sent == -1 ? "" : "the traffic of a native call is not reported as unknown";
}

bool says(const std::string& text, const std::string& words) { return text.find(words) != std::string::npos; }

std::string choices_that_cannot_be(Communicator& c) {
  std::vector<std::int32_t> x(100, 1);
  if (!says(thrown_by([&] { c.choose(Collective::all_reduce, "rnig"); }),
            "no all_reduce is called \"rnig\"\n  there are auto, native, ring"))
    return "an unknown algorithm of one collective is not refused";
  if (!says(thrown_by([&] { c.choose("rnig"); }), "no algorithm is called \"rnig\""))
    return "an unknown algorithm is not refused";
  if (!says(thrown_by([&] { c.choose(Collective::all_reduce, "ring", 0); }), "cannot be cut into 0 chunks"))
    return "0 chunks are not refused";
  c.choose("ring");
  const Call call{Collective::all_reduce, slice(x), slice(x)};
  if (c.choice(call).algorithm != "ring") return "ring was chosen, but is not run";
  c.choose(Collective::all_reduce, "auto");
  if (c.choice(call).why == "requested by name") return "auto does not undo a choice";
  c.all_reduce(slice(x));  // the group still works
  if (x[99] != c.size()) return "a sum is wrong after choices that were refused";

  Communicator lonely = c.split(0, 0), odd = c.split(0, 0);
  lonely.choose(Collective::all_reduce, "native");
  const std::string native = thrown_by([&] { lonely.all_reduce(slice(x)); });
  const std::string refused =
      fmt::format("{} has no native all_reduce\n  {} ranks, all_reduce of 100 i32", c.backend(), c.size());
  if (native != "nothing" && !says(native, refused)) return native;
  if ((native == "nothing") != c.transport().has_native(Collective::all_reduce)) return "native: " + native;
  const Backend& row = backend_named(c.backend());
  if (!row.devices_only && (native == "nothing") != row.has_native) return "the backend's row is wrong: " + native;
  if ((c.size() & (c.size() - 1)) == 0) return "";
  odd.choose(Collective::all_gather, "recursive_doubling");
  std::vector<std::int32_t> all(100 * static_cast<std::size_t>(c.size()));
  const std::string said = thrown_by([&] { odd.all_gather(slice(x), slice(all)); });
  return says(said, "all_gather recursive_doubling does not fit") ? "" : "does not fit: " + said;
}

// One rank gives up the group. All ranks get an error from every later call on the group, but the world still works.
std::string a_group_that_failed_stays_so(Communicator& c) {
  if (c.size() < 2) return "";
  Communicator group = c.split(0, c.rank());
  std::vector<std::int32_t> x(100, 1);
  const bool gives_up = c.rank() == c.size() - 1;
  const std::string first = thrown_by([&] {
    group.broadcast(slice(x), gives_up ? -1 : 0);
    group.barrier();
  });
  if (first == "nothing") return "the mistake of one rank was not detected";
  for (const std::string& said : {thrown_by([&] { group.barrier(); }), thrown_by([&] { group.start_barrier().wait(); })})
    if (!says(said, "rank")) return "a later barrier: " + said;
  std::vector<std::int32_t> ones(100, 1);
  c.all_reduce(slice(ones));
  return ones[0] == c.size() ? "" : "the world no longer works";
}

// There are more ranks than cores, so a waiting rank must yield its core.
std::string sums_of_a_crowd(Communicator& c) {
  Sample third(3);
  for (const Algorithm& algorithm : all_algorithms()) {
    Problem problem = Problem::even(algorithm.what, 64 * 3, c.size(), c.size() / 2, algorithm.what == Collective::broadcast);
    problem.rank = c.rank();
    if (algorithm.what == Collective::barrier || !fits(algorithm, problem) || !third.takes()) continue;
    c.choose(algorithm.what, algorithm.name);
    const Trial trial(problem, DType::i32, Redop::sum, c.allocator());
    c.run(trial.call());
    if (const std::string wrong = trial.trouble(); !wrong.empty()) return fmt::format("{} {}", algorithm.name, wrong);
  }
  return "";
}

constexpr Check crowd[] = {{"sums of a crowd", sums_of_a_crowd}};
constexpr Check group_checks[] = {
    {"groups by color and key", groups_by_color_and_key},
    {"groups know hosts", groups_know_hosts},
    {"messages in flight", messages_in_flight},
    {"a message outlives its group", a_message_outlives_its_group},
    {"many in flight", many_in_flight},
    {"requests move", requests_move},
    {"traffic equals the schedules'", traffic_is_what_schedules_say},
    {"impossible choices", choices_that_cannot_be},
    {"a failed group stays failed", a_group_that_failed_stays_so},
};

}  // namespace

TEST_CASE("groups, messages, requests and counted traffic are right on threads", "[threads]") {
  on_thread_worlds(group_checks, {1, 2, 3, 4, 7});
}
TEST_CASE("groups, messages, requests and counted traffic are right on every backend", "[spmd][hosts]") {
  on_every_backend(group_checks);
}

TEST_CASE("64 ranks on few cores get right results, as threads", "[threads]") { on_thread_worlds(crowd, {64}); }

// Run this with mpirun -np 64.
TEST_CASE("many ranks on few cores get right results, as processes", "[.crowd]") { on_every_backend(crowd); }
