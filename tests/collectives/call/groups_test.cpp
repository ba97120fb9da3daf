// Tests schedules that are divided into groups of messages, as NCCL requires. A group of messages completes only when all
// its messages have been sent and received. Every algorithm must end with the correct result.
#include "collectives/backends/message/groups.hpp"

#include <deque>
#include <map>

#include "collectives/backends/message/plan.hpp"
#include "tests/catch.hpp"
#include "tests/collectives/expectation.hpp"
#include "tests/collectives/schedule/planning.hpp"

using namespace chorale;
using namespace chorale::test;

namespace {

// The buffers and the progress of one rank.
struct Player {
  Player(const Plan& plan, const std::vector<Schedule>& ranks, Allocator& heap)
      : trial(plan.problem, plan.dtype, plan.op, heap),
        flat(plan),
        groups(in_groups(ranks, plan.problem.rank)),
        workspace(heap.allocate(flat.workspace_bytes, Category::workspace)) {
    const Call call = trial.call();
    bases[0] = call.input.data;
    bases[1] = call.output.data;
    bases[2] = workspace.data();
  }
  std::byte* at(BufferAddress spot) const {
    return static_cast<std::byte*>(bases[static_cast<std::size_t>(spot.place)]) + spot.byte;
  }
  bool through() const { return group == groups.size(); }

  void sum_and_copy() {
    for (const int s : groups[group].steps) {
      const FlatStep& step = flat.steps[static_cast<std::size_t>(s)];
      std::vector<const void*> addends;
      for (int a = step.addends.first; a < step.addends.last; ++a)
        addends.push_back(at(flat.spots[static_cast<std::size_t>(a)]));
      if (step.kind == Kind::copy)
        std::memmove(at(step.dst), addends[0], static_cast<std::size_t>(step.count * size_of(flat.dtype)));
      else
        reduce(flat.op, flat.dtype, at(step.dst), addends, step.count);
    }
  }

  Trial trial;
  MessagePlan flat;
  std::vector<MessageGroup> groups;
  Buffer workspace;
  void* bases[3];
  std::size_t group = 0;
  std::size_t delivered = 0;  // messages of the current group that have been delivered
  bool posted = false;
};

// Posts each rank's current group of messages, and delivers each message that both its sender and its receiver have posted.
// Returns "" if all ranks finish with the correct result.
std::string play(std::vector<Player>& players) {
  std::map<std::pair<int, int>, std::deque<int>> sends, receives;  // posted messages by (from, to)
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t r = 0; r < players.size(); ++r) {
      Player& me = players[r];
      if (me.through()) continue;
      const auto rank = static_cast<int>(r);
      for (const int m : me.groups[me.group].messages) {
        const FlatMessage& message = me.flat.messages[static_cast<std::size_t>(m)];
        if (me.posted) break;
        (message.incoming ? receives[{message.peer, rank}] : sends[{rank, message.peer}]).push_back(m);
      }
      moved = moved || !me.posted;
      me.posted = true;
    }
    for (auto& [line, sent] : sends)
      for (auto& taken = receives[line]; !sent.empty() && !taken.empty(); sent.pop_front(), taken.pop_front()) {
        Player &from = players[static_cast<std::size_t>(line.first)], &to = players[static_cast<std::size_t>(line.second)];
        const auto& left = from.flat.messages[static_cast<std::size_t>(sent.front())];
        const auto& came = to.flat.messages[static_cast<std::size_t>(taken.front())];
        if (left.bytes != came.bytes)
          return fmt::format("{} bytes are sent, but {} are to be received", left.bytes, came.bytes);
        std::memcpy(to.at(came.spot), from.at(left.spot), static_cast<std::size_t>(left.bytes));
        ++from.delivered;
        ++to.delivered;
        moved = true;
      }
    for (Player& me : players) {
      if (me.through() || !me.posted || me.delivered < me.groups[me.group].messages.size()) continue;
      me.sum_and_copy();
      ++me.group;
      me.delivered = 0;
      me.posted = false;
      moved = true;
    }
  }
  for (const Player& me : players)
    if (!me.through()) return "groups wait for one another";
  for (const Player& me : players)
    if (const std::string wrong = me.trial.trouble(); !wrong.empty()) return wrong;
  return "";
}

std::string played(const Algorithm& algorithm, const Problem& whole, int chunks, Allocator& heap) {
  std::vector<Plan> plans;
  for (int r = 0; r < whole.size; ++r)
    plans.push_back({.algorithm = &algorithm, .problem = whole.at(r), .dtype = DType::i32, .chunks = chunks});
  const std::vector<Schedule> ranks = schedules_of(plans[0]);
  std::vector<Player> players;
  for (const Plan& plan : plans) players.emplace_back(plan, ranks, heap);
  return play(players);
}

}  // namespace

TEST_CASE("every algorithm, cut into groups of messages, ends with the right result") {
  HostMemory memory;
  Ledger ledger;
  Allocator heap(memory, ledger);
  int cases = 0;
  for (const Algorithm& algorithm : all_algorithms())
    for (int size = 1; size <= 9; ++size)
      for (const std::int64_t each : {0, 1, 5})
        for (const int chunks : {1, 3})
          for (const bool in_place : {false, true}) {
            const bool even_blocks = algorithm.what == Collective::all_to_all;
            const Problem problem = Problem::even(algorithm.what, even_blocks ? each * size : each * size + each / 2, size,
                                                  size / 2, in_place || algorithm.what == Collective::broadcast);
            if (algorithm.what == Collective::barrier || !fits(algorithm, problem)) continue;
            INFO(name_of(algorithm.what) << " " << algorithm.name << " on " << size << " ranks, " << each << " each");
            REQUIRE(played(algorithm, problem, chunks, heap) == "");
            ++cases;
          }
  CHECK(cases > 2000);
}

// Rank 0 receives from rank 2, then from rank 1. If rank 0 received both messages in one group, this group would never
// complete. Rank 1 sends only after it has received a message from rank 0, and rank 0 sends that message only after its
// first group.
TEST_CASE("a receive that depends on a later send of the same rank is in a later group than this send") {
  const auto schedule = [](int rank) { return Schedule(Problem::even(Collective::all_reduce, 3, 3).at(rank)); };
  std::vector<Schedule> ranks{schedule(0), schedule(1), schedule(2)};
  ranks[0].recv(2, output(0, 1));
  ranks[0].recv(1, output(1, 1));
  ranks[0].send(1, output(0, 1));
  ranks[1].recv(0, output(0, 1));
  ranks[1].send(0, output(0, 1));
  ranks[2].send(0, input(0, 1));
  const auto groups = in_groups(ranks, 0);
  REQUIRE(groups.size() == 3);
  CHECK(groups[0].messages == std::vector{0});
  CHECK(groups[1].messages == std::vector{2});
  CHECK(groups[2].messages == std::vector{1});
}

// Messages from one rank to another are matched in the order of their steps. So rank 0 may not send its input, which is
// ready at once, in a group before the message that it forwards.
TEST_CASE("a message is not in an earlier group than the message before it from the same rank to the same rank") {
  const auto groups = in_groups(forwarding_ranks(), 0);
  REQUIRE(groups.size() == 2);
  CHECK(groups[0].messages == std::vector{0});
  CHECK(groups[1].messages == std::vector{1, 2});
}
