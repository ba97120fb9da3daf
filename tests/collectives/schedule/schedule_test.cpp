#include <chorale/schedule.hpp>

#include <algorithm>

#include "collectives/analysis/checker.hpp"
#include "tests/catch.hpp"
#include "tests/collectives/schedule/planning.hpp"

using namespace chorale;

using namespace chorale::test;

namespace {

// Returns the steps that `step` must wait for, found by comparing `step` with every earlier step. The planner in Schedule
// must find the same steps.
std::vector<int> waits_by_comparison(const Schedule& schedule, std::size_t step) {
  std::vector<int> after;
  std::vector<bool> implied(step, false);
  for (std::size_t earlier = step; earlier-- > 0;) {
    if (!implied[earlier] && conflict(schedule.problem(), schedule.steps[earlier], schedule.steps[step])) {
      after.insert(after.begin(), static_cast<int>(earlier));
      implied[earlier] = true;
    }
    if (implied[earlier])
      for (const int before : schedule.steps[earlier].after) implied[static_cast<std::size_t>(before)] = true;
  }
  return after;
}

}  // namespace

TEST_CASE("every algorithm is proved correct for 1 to 24 ranks and odd lengths, in place and out of place") {
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

TEST_CASE("algorithms that fit uneven or empty blocks are proved correct for them") {
  const std::vector<std::vector<std::int64_t>> cuts{{0, 0, 5}, {3, 0, 0, 1, 7}, {0, 0, 0, 0}, {9, 1}, {0, 4, 0, 4, 0, 4, 0}};
  for (const Algorithm& algorithm : all_algorithms())
    for (const auto& counts : cuts)
      for (const bool in_place : {false, true}) {
        if (algorithm.what == Collective::all_to_all || algorithm.what == Collective::barrier) continue;
        const Problem problem{algorithm.what, 0, static_cast<int>(counts.size()), 0, Blocks(counts), in_place};
        if (!fits(algorithm, problem)) continue;
        INFO(name_of(algorithm.what) << " " << algorithm.name << ", " << counts.size() << " ranks");
        REQUIRE(find_flaw(plan_all_ranks(algorithm, problem)) == "");
      }
}

TEST_CASE("an algorithm is found by its collective and its name, but not under another collective") {
  for (const Algorithm& algorithm : all_algorithms()) CHECK(find_algorithm(algorithm.what, algorithm.name) == &algorithm);
  CHECK(find_algorithm(Collective::barrier, "ring") == nullptr);
  CHECK(find_algorithm(Collective::all_reduce, "native") == nullptr);
}

TEST_CASE("the proof fails if any step of any algorithm is removed") {
  for (const Algorithm& algorithm : all_algorithms()) {
    const int size = algorithm.fits ? 4 : 5;
    const auto whole = plan_all_ranks(algorithm, even(algorithm.what, 13, size));
    for (std::size_t rank = 0; rank < whole.size(); ++rank)
      for (std::size_t step = 0; step < whole[rank].steps.size(); ++step) {
        auto broken = whole;
        auto& steps = broken[rank].steps;
        steps.erase(steps.begin() + static_cast<std::ptrdiff_t>(step));
        for (Step& later : steps) {  // removes the waits for the deleted step, and renumbers all other waits
          std::erase(later.after, static_cast<int>(step));
          for (int& before : later.after) before -= before > static_cast<int>(step);
        }
        INFO(name_of(algorithm.what) << " " << algorithm.name << " without step " << step << " of rank " << rank);
        REQUIRE_THAT(find_flaw(broken), says("rank ") && says("element "));
      }
  }
}

TEST_CASE("a step names exactly the steps that it must wait for") {
  for (const Algorithm& algorithm : all_algorithms())
    for (const bool in_place : {false, true})
      for (const int chunks : {1, 3}) {
        if (algorithm.name == std::string("pairwise")) continue;  // pairwise requests a stricter order than its data require
        const auto ranks = cut_all(plan_all_ranks(algorithm, even(algorithm.what, 37, 4, in_place)), chunks);
        INFO(name_of(algorithm.what) << " " << algorithm.name << ", " << chunks << " chunks"
                                     << (in_place ? ", in place" : ""));
        for (std::size_t rank = 0; rank < ranks.size(); ++rank)
          for (std::size_t step = 0; step < ranks[rank].steps.size(); ++step) {
            REQUIRE(ranks[rank].steps[step].after == waits_by_comparison(ranks[rank], step));
            for (const int named : ranks[rank].steps[step].after) {
              auto broken = ranks;
              std::erase(broken[rank].steps[step].after, named);
              REQUIRE_THAT(find_flaw(broken), says("does not wait for it"));
            }
          }
      }
}

TEST_CASE("each kind of mistake has its own message") {
  const Problem p = even(Collective::all_reduce, 4, 2);
  const auto ring = plan_all_ranks(named(Collective::all_reduce, "ring"), p);
  const auto broken = [&](auto change) {
    auto ranks = ring;
    change(ranks);
    return find_flaw(ranks);
  };
  CHECK_THAT(broken([](auto& r) { r[0].steps[1].dst.count = 1; }), says("2 elements arrive, 1 are expected"));
  CHECK_THAT(broken([](auto& r) { r[0].steps[3].dst.first = 3; }), says("writes outside its buffer"));
  CHECK_THAT(broken([](auto& r) { r[0].steps[2].after.clear(); }), says("does not wait for it"));
  CHECK_THAT(broken([](auto& r) { r[1].steps[0].src[0].first = 2; }), says("adds element 2 to element 0"));
  CHECK_THAT(broken([](auto& r) { r[1].steps.pop_back(); }), says("never received"));
  CHECK_THAT(broken([](auto& r) { r[1].steps[3].peers = {1}; }), says("a message to its own rank"));
  CHECK_THAT(broken([](auto& r) { r[0].steps[2].src[0].place = Place::scratch; }), says("reads outside its buffer"));
  CHECK_THAT(broken([](auto& r) { r[0].steps[0].after = {2}; }), says("does not come before it"));

  Schedule twice(p.at(0)), once(p.at(1));
  twice.send(1, input(0, 4));
  twice.recv(1, output(0, 4));
  once.recv_reduce(0, input(0, 4), output(0, 4));
  once.send(0, output(0, 4));
  CHECK(find_flaw({twice, once}) == "");
  Schedule early(p.at(0));
  early.send(1, output(0, 4));
  early.recv(1, output(0, 4));
  CHECK_THAT(find_flaw({early, once}), says("reads element 0 before it is written"));
  Schedule again(p.at(1));
  again.recv_reduce(0, input(0, 4), output(0, 4));
  again.reduce({output(0, 4), input(0, 4)}, output(0, 4));
  again.send(0, output(0, 4));
  CHECK_THAT(find_flaw({twice, again}), says("adds a rank's contribution to element 0 twice"));
}

TEST_CASE("a step that no backend can run is refused; the error names the step's rank, number and element") {
  const Problem p = even(Collective::all_reduce, 4, 2);
  const auto ring = plan_all_ranks(named(Collective::all_reduce, "ring"), p);
  const auto broken = [&](std::size_t step, auto change) {
    auto ranks = ring;
    change(ranks[1].steps[step]);
    return find_flaw(ranks);
  };
  const std::size_t send = 0, recv_reduce = 1, recv = 3;
  CHECK_THAT(broken(recv_reduce, [](Step& s) { s.peers = {1}; }),
             says("rank 1, step 1, output element 2 and on: is a message to its own rank"));
  CHECK_THAT(broken(send, [](Step& s) { s.peers = {2}; }),
             says("rank 1, step 0, input element 0 and on: names rank 2, but there are 2 ranks"));
  CHECK_THAT(broken(send, [](Step& s) { s.peers = {-1}; }), says("names rank -1, but there are 2 ranks"));
  CHECK_THAT(broken(recv_reduce, [](Step& s) { s.peers = {0, 0}; }), says("out of rank order, or names a peer twice"));
  CHECK_THAT(broken(send, [](Step& s) { s.peers.clear(); }), says("has no peer"));
  CHECK_THAT(broken(recv_reduce, [](Step& s) { s.peers.clear(); }), says("has no peer"));
  CHECK_THAT(broken(recv, [](Step& s) { s.peers.clear(); }), says("receives from 0 peers"));
  CHECK_THAT(broken(recv, [](Step& s) { s.peers = {0, 0}; }), says("receives from 2 peers"));
  CHECK_THAT(broken(send, [](Step& s) { s.src.clear(); }),
             says("step 0, input element 0 and on: has 0 source ranges instead of 1"));
  CHECK_THAT(broken(send, [](Step& s) { s.src.push_back(s.src[0]); }), says("has 2 source ranges instead of 1"));
  CHECK_THAT(broken(recv_reduce, [](Step& s) { s.src.clear(); }), says("has 0 source ranges instead of 1"));
  CHECK_THAT(broken(recv_reduce, [](Step& s) { s.src.push_back(s.src[0]); }), says("has 2 source ranges instead of 1"));
  CHECK_THAT(broken(recv, [](Step& s) { s.src = {input(0, 2)}; }), says("has 1 source ranges instead of 0"));
  CHECK_THAT(broken(recv, [](Step& s) { s.dst.place = Place::input; }), says("writes the input"));
}

TEST_CASE("a local step that no backend can run is refused too") {
  const auto flaw = [](bool in_place, Step step) {
    Schedule s(even(Collective::all_reduce, 4, 1, in_place));
    s.copy(input(0, 4), output(0, 4));
    s.wait_for_all();
    step.after = {};
    s.add(std::move(step));
    return find_flaw({s});
  };
  CHECK(flaw(false, {.kind = Kind::copy, .src = {input(0, 4)}, .dst = output(0, 4)}) == "");
  CHECK_THAT(flaw(false, {.kind = Kind::copy, .peers = {0}, .src = {input(0, 4)}, .dst = output(0, 4)}),
             says("has 1 peers"));
  CHECK_THAT(flaw(false, {.kind = Kind::copy, .dst = output(0, 4)}), says("has 0 source ranges instead of 1"));
  CHECK_THAT(flaw(false, {.kind = Kind::copy, .src = {input(0, 4), input(0, 4)}, .dst = output(0, 4)}),
             says("has 2 source ranges instead of 1"));
  CHECK_THAT(flaw(false, {.kind = Kind::copy, .src = {input(0, 2)}, .dst = output(0, 4)}),
             says("2 elements arrive, 4 are expected"));
  CHECK_THAT(flaw(false, {.kind = Kind::reduce, .dst = output(0, 4)}), says("reduces nothing"));
  CHECK_THAT(flaw(false, {.kind = Kind::reduce, .src = {input(0, 3)}, .dst = output(0, 4)}),
             says("3 elements arrive, 4 are expected"));
  CHECK_THAT(flaw(false, {.kind = Kind::copy, .src = {output(0, 4)}, .dst = input(0, 4)}), says("writes the input"));

  const std::string shifted = "its source and destination overlap but differ";
  CHECK(flaw(false, {.kind = Kind::reduce, .src = {output(1, 2)}, .dst = output(1, 2)}) == "");
  CHECK(flaw(true, {.kind = Kind::reduce, .src = {input(1, 2)}, .dst = output(1, 2)}) == "");
  CHECK_THAT(flaw(false, {.kind = Kind::copy, .src = {output(0, 3)}, .dst = output(1, 3)}), says(shifted));
  CHECK_THAT(flaw(true, {.kind = Kind::copy, .src = {input(1, 2)}, .dst = output(0, 2)}), says(shifted));
  CHECK_THAT(flaw(true, {.kind = Kind::reduce, .src = {input(0, 3)}, .dst = output(0, 4)}), says(shifted));
}

TEST_CASE("two ranks deadlock if each waits for its send before it receives") {
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

TEST_CASE("a message does not overtake an earlier one") {
  const Problem p = even(Collective::all_reduce, 2, 2);
  Schedule first(p.at(0)), second(p.at(1));
  first.recv(1, output(0, 1));
  first.send(1, output(0, 1));
  first.send(1, input(1, 1));
  second.recv(0, second.scratch(1));
  second.recv(0, output(0, 1));
  second.send(0, output(0, 1));
  CHECK_THAT(find_flaw({first, second}), says("waits forever"));
}

TEST_CASE("the number of elements sent matches the closed forms") {
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

TEST_CASE("describe() lists a schedule's steps") {
  const auto ring = plan_all_ranks(named(Collective::all_reduce, "ring"), even(Collective::all_reduce, 8, 2));
  CHECK(ring[0].describe() ==
        "   0  send         to 1          input[4..8)\n"
        "   1  recv_reduce  from 1        input[0..4) + received → output[0..4)\n"
        "   2  send         to 1          output[0..4)  after 1\n"
        "   3  recv         from 1        output[4..8)\n");
}

TEST_CASE("in place, a block and its place in the whole vector are the same memory") {
  Problem gather = even(Collective::all_gather, 9, 3, true);
  gather.rank = 2;  // the block of rank 2 consists of elements 6 to 8
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

TEST_CASE("blocks that are already in place are not copied") {
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
