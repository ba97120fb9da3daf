#include "collectives/schedule.hpp"

#include <algorithm>
#include <string>

#include "collectives/algorithms.hpp"
#include "collectives/checker.hpp"
#include "tests/catch.hpp"

using namespace chorale;

namespace {

const Algorithm& named(Collective what, const std::string& name) {
  for (const Algorithm& algorithm : all_algorithms())
    if (algorithm.what == what && algorithm.name == name) return algorithm;
  throw std::runtime_error("no algorithm " + name);
}

Problem even(Collective what, std::int64_t count, int size, bool in_place = false, int root = 0) {
  return Problem::even(what, count, size, root, in_place);
}

}  // namespace

TEST_CASE("every algorithm is proved for 1 to 24 ranks and odd lengths, in place and out of place") {
  for (const Algorithm& algorithm : all_algorithms())
    for (int size = 1; size <= 24; ++size)
      for (const std::int64_t count : {0, 1, size - 1, size, 2 * size + 1})
        for (const bool in_place : {false, true})
          for (const int root : {0, size / 2}) {
            const Problem problem = even(algorithm.what, count, size, in_place, root);
            if (!fits(algorithm, problem)) continue;
            INFO(name_of(algorithm.what) << " " << algorithm.name << ", " << size << " ranks, " << count
                                         << " elements, root " << root << (in_place ? ", in place" : ""));
            REQUIRE(find_flaw(plan_all_ranks(algorithm, problem)) == "");
          }
}

TEST_CASE("blocks of any sizes, empty ones too, are proved") {
  const std::vector<std::vector<std::int64_t>> cuts{{0, 0, 5}, {3, 0, 0, 1, 7}, {0, 0, 0, 0}, {9, 1}, {0, 4, 0, 4, 0, 4, 0}};
  for (const Algorithm& algorithm : all_algorithms())
    for (const auto& counts : cuts)
      for (const bool in_place : {false, true}) {
        const Problem problem{algorithm.what, 0, static_cast<int>(counts.size()), 0, Blocks(counts), in_place};
        if (!fits(algorithm, problem)) continue;
        INFO(name_of(algorithm.what) << " " << algorithm.name << ", " << counts.size() << " ranks");
        REQUIRE(find_flaw(plan_all_ranks(algorithm, problem)) == "");
      }
}

TEST_CASE("a step removed from any algorithm is noticed") {
  for (const Algorithm& algorithm : all_algorithms()) {
    const int size = algorithm.fits ? 4 : 5;
    const auto whole = plan_all_ranks(algorithm, even(algorithm.what, 13, size));
    for (std::size_t rank = 0; rank < whole.size(); ++rank)
      for (std::size_t step = 0; step < whole[rank].steps.size(); ++step) {
        auto broken = whole;
        auto& steps = broken[rank].steps;
        steps.erase(steps.begin() + static_cast<std::ptrdiff_t>(step));
        for (Step& later : steps) {  // those that waited for it wait for nothing; the others still for whom they meant
          std::erase(later.after, static_cast<int>(step));
          for (int& before : later.after) before -= before > static_cast<int>(step);
        }
        INFO(name_of(algorithm.what) << " " << algorithm.name << " without step " << step << " of rank " << rank);
        REQUIRE(find_flaw(broken) != "");
      }
  }
}

TEST_CASE("each kind of mistake is told apart") {
  const Problem p = even(Collective::all_reduce, 4, 2);
  const auto ring = plan_all_ranks(named(Collective::all_reduce, "ring"), p);
  const auto broken = [&](auto change) {
    auto ranks = ring;
    change(ranks);
    return find_flaw(ranks);
  };
  CHECK_THAT(broken([](auto& r) { r[0].steps[1].dst.count = 1; }), says("2 elements come, 1 are expected"));
  CHECK_THAT(broken([](auto& r) { r[0].steps[3].dst.first = 3; }), says("writes outside its buffer"));
  CHECK_THAT(broken([](auto& r) { r[0].steps[2].after.clear(); }), says("does not wait for it"));
  CHECK_THAT(broken([](auto& r) { r[1].steps[0].src[0].first = 2; }), says("adds element 2 to element 0"));
  CHECK_THAT(broken([](auto& r) { r[1].steps.pop_back(); }), says("never received"));
  CHECK_THAT(broken([](auto& r) { r[1].steps[3].peers = {1}; }), says("waits for ever"));
  CHECK_THAT(broken([](auto& r) { r[0].steps[2].src[0].place = Place::scratch; }), says("reads outside its buffer"));
  CHECK_THAT(broken([](auto& r) { r[0].steps[0].after = {2}; }), says("does not stand before it"));

  Schedule twice(p.at(0)), once(p.at(1));
  twice.send(1, input(0, 4)), twice.recv(1, output(0, 4));
  once.recv_reduce(0, input(0, 4), output(0, 4)), once.send(0, output(0, 4));
  CHECK(find_flaw({twice, once}) == "");
  Schedule early(p.at(0));
  early.send(1, output(0, 4)), early.recv(1, output(0, 4));
  CHECK_THAT(find_flaw({early, once}), says("reads element 0 before it is written"));
  Schedule again(p.at(1));
  again.recv_reduce(0, input(0, 4), output(0, 4));
  again.reduce({output(0, 4), input(0, 4)}, output(0, 4));
  again.send(0, output(0, 4));
  CHECK_THAT(find_flaw({twice, again}), says("comes twice"));
}

TEST_CASE("two ranks that send before they receive, and wait for the send, are a deadlock") {
  const Problem p = even(Collective::all_reduce, 1, 2);
  std::vector<Schedule> ranks{Schedule(p.at(0)), Schedule(p.at(1))};
  for (int r = 0; r < 2; ++r) {
    ranks[static_cast<std::size_t>(r)].send(1 - r, input(0, 1));
    ranks[static_cast<std::size_t>(r)].recv_reduce(1 - r, input(0, 1), output(0, 1));
  }
  CHECK(find_flaw(ranks) == "");
  for (Schedule& rank : ranks) rank.steps[1].after = {0};
  CHECK_THAT(find_flaw(ranks), says("deadlock when sends wait for their receives"));
}

TEST_CASE("the bytes sent are those of the closed forms") {
  const std::int64_t n = 5040;
  for (const int p : {1, 2, 3, 5, 8}) {
    const auto sent = [&](Collective what, const char* name) {
      const auto ranks = plan_all_ranks(named(what, name), even(what, n, p));
      std::int64_t most = 0;
      for (const Schedule& rank : ranks) most = std::max(most, rank.elements_sent());
      return most;
    };
    CHECK(sent(Collective::all_reduce, "ring") == 2 * (p - 1) * (n / p));
    CHECK(sent(Collective::reduce_scatter, "ring") == (p - 1) * (n / p));
    CHECK(sent(Collective::all_gather, "direct") == (p - 1) * (n / p));
    CHECK(sent(Collective::all_reduce, "one_shot") == (p - 1) * n);
  }
}

TEST_CASE("a schedule can be read") {
  const auto ring = plan_all_ranks(named(Collective::all_reduce, "ring"), even(Collective::all_reduce, 8, 2));
  CHECK(ring[0].describe() ==
        "   0  send         to 1          input[4..8)\n"
        "   1  recv_reduce  from 1        input[0..4) + theirs → output[0..4)\n"
        "   2  send         to 1          output[0..4)  after 1\n"
        "   3  recv         from 1        output[4..8)\n");
}

TEST_CASE("in place, a block and its place in the whole vector are the same memory") {
  Problem gather = even(Collective::all_gather, 9, 3, true);
  gather.rank = 2;  // its block is elements 6 to 8
  CHECK(overlap(gather, input(0, 3), output(6, 1)));
  CHECK(overlap(gather, input(2, 1), output(8, 1)));
  CHECK_FALSE(overlap(gather, input(0, 3), output(0, 6)));
  CHECK_FALSE(overlap(gather, {Place::scratch, 6, 1}, output(6, 1)));
  gather.in_place = false;
  CHECK_FALSE(overlap(gather, input(0, 3), output(6, 1)));
  Problem scatter = even(Collective::reduce_scatter, 9, 3, true);
  scatter.rank = 1;
  CHECK(overlap(scatter, output(0, 1), input(3, 1)));
  CHECK_FALSE(overlap(scatter, output(0, 3), input(0, 3)));
}

TEST_CASE("what lies where it belongs already is not copied") {
  for (const Algorithm& algorithm : all_algorithms()) {
    if (algorithm.what != Collective::all_gather) continue;
    for (const bool in_place : {false, true}) {
      const auto ranks = plan_all_ranks(algorithm, even(Collective::all_gather, 8, 4, in_place));
      const auto is_copy = [](const Step& step) { return step.kind == Kind::copy; };
      INFO(algorithm.name << (in_place ? ", in place" : ""));
      CHECK(std::count_if(ranks[1].steps.begin(), ranks[1].steps.end(), is_copy) == (in_place ? 0 : 1));
    }
  }
}
