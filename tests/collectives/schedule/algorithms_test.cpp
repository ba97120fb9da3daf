// Tests properties of individual algorithms, apart from correct results: the bytes and messages that each rank sends, and
// the peers that it sends to.
#include <algorithm>
#include <bit>
#include <set>

#include "collectives/analysis/checker.hpp"
#include "collectives/schedule/trees.hpp"
#include "src/base/topology.hpp"
#include "tests/catch.hpp"
#include "tests/collectives/schedule/planning.hpp"

using namespace chorale;
using namespace chorale::test;

namespace {

int messages_sent(const Schedule& schedule) {
  int messages = 0;
  for (const Step& step : schedule.steps)
    if (step.kind == Kind::send) messages += static_cast<int>(step.peers.size());
  return messages;
}

int log_up(int p) { return std::bit_width(static_cast<unsigned>(p - 1)); }
int log_down(int p) { return std::bit_width(static_cast<unsigned>(p)) - 1; }

using Matrix = std::vector<std::vector<std::int64_t>>;

}  // namespace

TEST_CASE("an all_to_all with blocks of any size is proved correct, in place too") {
  const std::vector<Matrix> matrices{
      {{3}},
      {{0, 5}, {2, 0}},
      {{1, 2, 3}, {4, 5, 6}, {7, 8, 9}},
      {{0, 0, 0}, {4, 0, 2}, {0, 0, 0}},
      {{0, 0, 9, 0}, {0, 0, 0, 0}, {1, 1, 1, 1}, {0, 7, 0, 3}},
      {{2, 2, 2, 2, 2}, {0, 0, 0, 0, 0}, {5, 4, 3, 2, 1}, {1, 0, 1, 0, 1}, {0, 3, 0, 3, 0}},
  };
  for (const Matrix& counts : matrices)
    for (const bool in_place : {false, true})
      for (const char* name : {"pairwise", "direct"})
        for (const int chunks : {1, 3}) {
          const auto ranks = plan_all_ranks(named(Collective::all_to_all, name), Problem::exchange(counts, in_place));
          INFO(name << ", " << counts.size() << " ranks, " << chunks << " chunks" << (in_place ? ", in place" : ""));
          REQUIRE(find_flaw(cut_all(ranks, chunks)) == "");
        }
  const Algorithm& bruck = named(Collective::all_to_all, "bruck");
  CHECK_FALSE(fits(bruck, Problem::exchange(matrices[2])[0]));
  CHECK(fits(bruck, even(Collective::all_to_all, 12, 3)));
  CHECK_THROWS_WITH(Problem::exchange({{1, 2}, {3}}), says("rank 1 has counts for 1 ranks, but there are 2 ranks"));
}

TEST_CASE("an all_to_all that sends the wrong block, or stores a block in the wrong place, is detected") {
  const auto whole = plan_all_ranks(named(Collective::all_to_all, "direct"), even(Collective::all_to_all, 12, 3));
  const auto find = [](Schedule& rank, Kind kind, int peer) -> Step& {
    return *std::find_if(rank.steps.begin(), rank.steps.end(),
                         [&](const Step& step) { return step.kind == kind && step.peers == std::vector<int>{peer}; });
  };
  auto wrong_block = whole;
  std::swap(find(wrong_block[0], Kind::send, 1).src, find(wrong_block[0], Kind::send, 2).src);
  CHECK_THAT(find_flaw(wrong_block), says("rank 1, output element 0: has 1 of 1 contributions, to element 8 instead of 4"));
  auto wrong_source = whole;
  std::swap(find(wrong_source[0], Kind::recv, 1).dst, find(wrong_source[0], Kind::recv, 2).dst);
  CHECK_THAT(find_flaw(wrong_source), says("rank 0, output element 4"));
}

TEST_CASE("a barrier may count an arrival twice, but a sum may not count a contribution twice") {
  const Problem barrier = even(Collective::barrier, 1, 2), sum = even(Collective::all_reduce, 1, 2);
  const auto twice = [](const Problem& p) {
    std::vector<Schedule> ranks{Schedule(p.at(0)), Schedule(p.at(1))};
    for (int r = 0; r < 2; ++r) {
      Schedule& s = ranks[static_cast<std::size_t>(r)];
      s.send(1 - r, input(0, 1));
      s.recv_reduce(1 - r, input(0, 1), output(0, 1));
      s.reduce({output(0, 1), input(0, 1)}, output(0, 1));
    }
    return find_flaw(ranks);
  };
  CHECK(twice(barrier) == "");
  CHECK_THAT(twice(sum), says("adds a rank's contribution to element 0 twice"));
  std::vector<Schedule> alone{Schedule(barrier.at(0)), Schedule(barrier.at(1))};
  for (Schedule& s : alone) s.copy(input(0, 1), output(0, 1));
  CHECK_THAT(find_flaw(alone), says("1 of 2 contributions"));
}

TEST_CASE("messages and elements sent match the closed forms") {
  for (const int p : {1, 2, 3, 5, 8, 13}) {
    const std::int64_t n = 60 * p, block = n / p;
    const auto ranks = [&](Collective what, const char* name) {
      return plan_all_ranks(named(what, name), even(what, n, p));
    };
    const auto all_messages = [](const std::vector<Schedule>& schedules) {
      int sum = 0;
      for (const Schedule& schedule : schedules) sum += messages_sent(schedule);
      return sum;
    };
    INFO(p << " ranks");
    for (const Schedule& rank : ranks(Collective::all_to_all, "bruck")) {
      std::int64_t blocks = 0;
      for (int i = 0; i < p; ++i) blocks += std::popcount(static_cast<unsigned>(i));
      CHECK(messages_sent(rank) == log_up(p));
      CHECK(rank.elements_sent() == blocks * block);
    }
    for (const char* name : {"pairwise", "direct"})
      for (const Schedule& rank : ranks(Collective::all_to_all, name)) {
        CHECK(messages_sent(rank) == p - 1);
        CHECK(rank.elements_sent() == (p - 1) * block);
      }
    for (const Schedule& rank : ranks(Collective::barrier, "dissemination")) CHECK(messages_sent(rank) == log_up(p));
    CHECK(all_messages(ranks(Collective::barrier, "binomial_tree")) == 2 * (p - 1));
    CHECK(all_messages(ranks(Collective::barrier, "direct")) == p * (p - 1));
    for (const Collective what : {Collective::broadcast, Collective::reduce}) {
      CHECK(all_messages(ranks(what, "chain")) == p - 1);
      for (const Schedule& rank : ranks(what, "chain")) CHECK(rank.elements_sent() <= n);
      for (const Schedule& rank : ranks(what, "double_tree")) CHECK(rank.elements_sent() <= n);
    }
    for (const Schedule& rank : ranks(Collective::all_reduce, "double_binary_tree")) CHECK(rank.elements_sent() <= 2 * n);
  }
}

TEST_CASE("two complementary trees share no inner node, and both have minimal depth") {
  for (int size = 1; size <= 130; ++size)
    for (const int tree : {0, 1}) {
      int roots = 0;
      std::set<int> children;
      for (int rank = 0; rank < size; ++rank) {
        const TreeNode node = in_tree(tree, rank, size);
        INFO(size << " ranks, tree " << tree << ", rank " << rank);
        REQUIRE((node.children.empty() || in_tree(1 - tree, rank, size).children.empty()));
        roots += node.parent < 0;
        for (const int child : node.children) {
          CHECK(in_tree(tree, child, size).parent == rank);
          CHECK(children.insert(child).second);
        }
        int depth = 0;
        for (int up = rank; in_tree(tree, up, size).parent >= 0; up = in_tree(tree, up, size).parent) ++depth;
        CHECK(depth <= log_down(size));
      }
      CHECK(roots == 1);
      CHECK(static_cast<int>(children.size()) == size - 1);
    }
}

TEST_CASE("a hierarchical all-reduce sends only a rank's part of the vector between hosts") {
  const std::int64_t n = 240;
  Problem problem = even(Collective::all_reduce, n, 12);
  problem.hosts = Topology::of_counts({4, 4, 4}).host_of;
  for (const Schedule& rank : plan_all_ranks(named(Collective::all_reduce, "hierarchical"), problem)) {
    const int own_host = rank.problem().rank / 4;
    std::int64_t between = 0;
    for (const Step& step : rank.steps)
      for (const int peer : step.peers) {
        if (step.kind != Kind::send || peer / 4 == own_host) continue;
        CHECK(peer % 4 == rank.problem().rank % 4);
        between += step.src[0].count;
      }
    CHECK(between == 2 * (n / 4) * 2 / 3);  // the traffic of a circulant all-reduce of n/4 elements on three hosts
  }
}

TEST_CASE("a pairwise all_to_all begins a round when the previous round is over") {
  const auto ranks = plan_all_ranks(named(Collective::all_to_all, "pairwise"), even(Collective::all_to_all, 3, 3));
  CHECK(ranks[0].describe() ==
        "   0  copy                       input[0..1) → output[0..1)\n"
        "   1  send         to 1          input[1..2)\n"
        "   2  recv         from 2        output[2..3)\n"
        "   3  send         to 2          input[2..3)  after 0, 1, 2\n"
        "   4  recv         from 1        output[1..2)  after 0, 1, 2\n");
}
