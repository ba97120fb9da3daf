#include "collectives/schedule/chunking.hpp"

#include <algorithm>

#include "collectives/analysis/checker.hpp"
#include "tests/catch.hpp"
#include "tests/collectives/schedule/planning.hpp"

using namespace chorale;
using namespace chorale::test;

TEST_CASE("every algorithm is proved correct in chunks too, and sends as many elements as without chunks") {
  for (const Algorithm& algorithm : all_algorithms())
    for (const int size : {1, 2, 3, 5, 8, 13})
      for (const int chunks : {2, 3, 4, 7})
        for (const bool in_place : {false, true})
          for (const std::int64_t count : {size + 2, 7 * size + 3}) {
            const Problem problem = even(algorithm.what, count, size, in_place, size / 2);
            if (!fits(algorithm, problem)) continue;
            INFO(name_of(algorithm.what) << " " << algorithm.name << ", " << size << " ranks, " << count << " elements in "
                                         << chunks << " chunks" << (in_place ? ", in place" : ""));
            const auto whole = plan_all_ranks(algorithm, problem), cut = cut_all(whole, chunks);
            REQUIRE(find_flaw(cut) == "");
            for (std::size_t r = 0; r < whole.size(); ++r) CHECK(cut[r].elements_sent() == whole[r].elements_sent());
          }
}

TEST_CASE("a hierarchical all-reduce is proved correct for hosts of any size, also in chunks") {
  const Algorithm& algorithm = named(Collective::all_reduce, "hierarchical");
  for (int size = 1; size <= 13; ++size)
    for (int each = 1; each <= size + 1; ++each)
      for (const int chunks : {1, 3})
        for (const bool in_place : {false, true}) {
          Problem problem = even(Collective::all_reduce, 5 * size + 2, size, in_place);
          for (int rank = 0; rank < size; ++rank) problem.hosts.push_back(rank / each);
          INFO(size << " ranks, " << each << " on a host, " << chunks << " chunks" << (in_place ? ", in place" : ""));
          REQUIRE(find_flaw(cut_all(plan_all_ranks(algorithm, problem), chunks)) == "");
        }
}

TEST_CASE("a chain cut into chunks passes on one chunk while it receives the next") {
  const auto ranks = plan_all_ranks(named(Collective::broadcast, "chain"), even(Collective::broadcast, 5, 3));
  CHECK(cut_into_chunks(ranks[1], 3).describe() ==
        "   0  recv         from 0        output[0..1)\n"
        "   1  recv         from 0        output[1..3)\n"
        "   2  send         to 2          output[0..1)  after 0\n"
        "   3  recv         from 0        output[3..5)\n"
        "   4  send         to 2          output[1..3)  after 1\n"
        "   5  send         to 2          output[3..5)  after 3\n");
  CHECK(cut_into_chunks(ranks[1], 1).describe() == ranks[1].describe());
  CHECK(cut_into_chunks(ranks[1], 9).steps.size() == 10);  // five elements give at most five chunks
  CHECK_THROWS_WITH(cut_into_chunks(ranks[1], 0), says("cannot be cut into 0 chunks"));
}

TEST_CASE("a chunk waits for every earlier chunk whose elements it touches, even if the two steps are cut differently") {
  const Problem p = even(Collective::all_reduce, 8, 2);
  Schedule s(p.at(0));
  s.recv(1, output(0, 8));
  s.send(1, output(4, 4));  // of the four chunks received above, the third contains the first chunk of this send
  const Schedule cut = cut_into_chunks(s, 4);
  REQUIRE(cut.steps.size() == 8);
  for (const Step& step : cut.steps)
    if (step.kind == Kind::send) {
      REQUIRE(step.after.size() == 1);
      const Range& source = cut.steps[static_cast<std::size_t>(step.after[0])].dst;
      CHECK(source.first <= step.src[0].first);
      CHECK(source.first + source.count >= step.src[0].first + step.src[0].count);
    }
}

TEST_CASE("an order that an algorithm requests is kept chunk by chunk") {
  const auto whole = plan_all_ranks(named(Collective::all_to_all, "pairwise"), even(Collective::all_to_all, 24, 3));
  const Schedule cut = cut_into_chunks(whole[0], 2);
  int ordered = 0;
  for (const Step& step : cut.steps) {
    if (step.kind != Kind::send || step.peers[0] != 2) continue;  // rank 0 sends to rank 2 in the second round
    for (const int earlier : step.after) {
      const Step& before = cut.steps[static_cast<std::size_t>(earlier)];
      ordered += before.kind != Kind::copy;
      CHECK((before.kind == Kind::send ? before.src[0].first % 8 : before.dst.first % 8) == step.src[0].first % 8);
    }
  }
  CHECK(ordered == 4);  // each of the two chunks waits for a send and a receive of the first round
}
