// The guard is the process that watches the ranks of a host. These tests check how the guard explains a dead rank, a late
// rank, mismatched calls and a lost message. They also check messages between guards, and the rule that decides whether a
// run hangs.
#include "src/base/guard/dump.hpp"
#include "src/base/guard/explanation.hpp"
#include "src/base/guard/flight.hpp"
#include "src/base/guard/guard_words.hpp"
#include "src/base/guard/patience.hpp"
#include "tests/catch.hpp"
#include "tests/refused.hpp"
#include "tests/temporary.hpp"

namespace chorale::test {
namespace {

constexpr std::uint64_t all_four = 11, first_two = 22;

struct Shown {
  std::uint64_t group;
  const char* members;
  std::uint64_t sequence;
  const char* words;
  FlightCall::State state = FlightCall::State::over;
  int awaits = -1;
};

SeenRank rank_that(int rank, bool waits, std::initializer_list<Shown> calls, char state = 'S') {
  SeenRank seen;
  FlightPage& page = seen.page;
  page.rank = rank;
  page.size = 4;
  page.waits = waits;
  put(page.host, rank < 2 ? "n0" : "n1");
  put(page.doing, "step 12");
  for (const Shown& shown : calls) {
    FlightCall& call = page.calls[++page.newest % FlightPage::kept];
    call.ticket = page.newest;
    call.group = shown.group;
    call.sequence = shown.sequence;
    call.state = shown.state;
    call.awaits = shown.awaits;
    put(call.members, shown.members);
    put(call.words, shown.words);
    if (!page.group(shown.group)) page.groups[++page.groups_so_far] = {shown.group, 0, 0};
    const_cast<FlightGroup*>(page.group(shown.group))->calls = shown.sequence;
  }
  for (const std::uint64_t group : {all_four, first_two})
    if (!page.group(group)) page.groups[++page.groups_so_far] = {group, 0, 0};
  page.awaited = waits ? page.newest : 0;
  seen.state = state;
  return seen;
}

constexpr auto begun = FlightCall::State::begun;
const Shown sixth{all_four, "0-3", 6, "all_gather of 8 f32, ring"};
const Shown seventh{all_four, "0-3", 7, "all_reduce of 64 f32, sum, ring", begun};

bool says(const std::string& text, const std::string& part) {
  INFO(text);
  const bool found = text.find(part) != std::string::npos;
  CHECK(found);
  return found;
}

TEST_CASE("the guard names a stopped rank, and who waits for it") {
  const std::string said = explain_hang({rank_that(0, true, {sixth, seventh}), rank_that(1, true, {sixth, seventh}),
                                         rank_that(2, false, {sixth}, 'T'), rank_that(3, true, {sixth, seventh})},
                                        60);
  says(said, "error: the run hangs: nothing has moved for 60.0 s\n");
  says(said,
       "rank 2 on n1 is late: it is stopped, as by SIGSTOP, in step 12; its last call: call 6 of ranks 0-3, all_gather");
  says(said, "ranks 0-1,3 wait in call 7 of ranks 0-3, all_reduce of 64 f32, sum, ring, for rank 2\n");
  CHECK(said.find("rank 0 on") == std::string::npos);
}

TEST_CASE("programs get the ranks that the guard blames for a hang") {
  const SeenRank waits = rank_that(0, true, {sixth, seventh}), late = rank_that(2, false, {sixth}, 'T');
  CHECK(late_ranks({waits, rank_that(1, true, {sixth, seventh}), late, rank_that(3, true, {sixth, seventh})}) ==
        std::set<int>{2});
  CHECK(late_ranks({waits, rank_that(1, true, {sixth, seventh})}).empty());
}

TEST_CASE("the guard names the rank at the end of a chain of waits") {
  const Shown pair{first_two, "0-1", 3, "broadcast of 4 f32", begun};
  const std::string said = explain_hang({rank_that(0, false, {sixth}, 'R'), rank_that(1, true, {sixth, pair}),
                                         rank_that(2, true, {sixth, seventh}), rank_that(3, true, {sixth, seventh})},
                                        5);
  says(said, "rank 0 on n0 is late: it computes, in step 12");
  says(said, "rank 1 waits in call 3 of ranks 0-1, broadcast of 4 f32, for rank 0\n");
  says(said, "ranks 2-3 wait in call 7 of ranks 0-3, all_reduce of 64 f32, sum, ring, for ranks 0-1\n");
  CHECK(said.find("rank 1 on") == std::string::npos);
}

TEST_CASE("the guard shows different calls, ranks that wait for each other, and a message that is lost") {
  Shown other = seventh;
  other.words = "all_reduce of 65 f32, sum, ring";
  says(explain_hang({rank_that(0, true, {sixth, seventh}), rank_that(1, true, {sixth, other})}, 5),
       "rank 1 called all_reduce of 65 f32, sum, ring");
  const Shown pair{first_two, "0-1", 3, "broadcast of 4 f32", begun};
  const std::string crossed = explain_hang({rank_that(0, true, {sixth, seventh}), rank_that(1, true, {sixth, pair})}, 5);
  says(crossed, "rank 0 on n0 is late: it waits in another call");
  says(crossed, "rank 1 on n0 is late: it waits in another call");
  Shown waiting = seventh;
  waiting.awaits = 1;
  says(explain_hang({rank_that(0, true, {sixth, waiting}), rank_that(1, true, {sixth, seventh})}, 5),
       "which all its ranks have begun: a message from rank 1 has not come");
}

TEST_CASE("a deadlock is certain only if each rank waits for one that is late and waits too") {
  Shown all = seventh;
  all.awaits = 1;
  const Shown pair{first_two, "0-1", 3, "broadcast of 4 f32", begun, 0};
  const std::string said = explain_deadlock({rank_that(0, true, {sixth, all}), rank_that(1, true, {sixth, pair}),
                                             rank_that(2, true, {sixth, all}), rank_that(3, false, {sixth})});
  says(said,
       "error: ranks wait for each other\n  rank 0 on n0 waits for rank 1 in call 7 of ranks 0-3, all_reduce of 64 f32");
  says(said, "rank 1 on n0 waits for rank 0 in call 3 of ranks 0-1, broadcast of 4 f32\n");
  CHECK(said.find("rank 3") == std::string::npos);
  // None of these three cases is a deadlock. In the first case, the late rank computes. In the second case, the late rank
  // waits in a call that all ranks have begun. In the third case, the rank that the other ranks wait for has begun the call.
  CHECK(explain_deadlock({rank_that(0, true, {sixth, all}), rank_that(1, false, {sixth, pair})}).empty());
  Shown begun_by_both = pair;
  CHECK(explain_deadlock({rank_that(0, true, {pair, all}), rank_that(1, true, {sixth, begun_by_both})}).empty());
  CHECK(explain_deadlock({rank_that(0, true, {sixth, all}), rank_that(1, true, {sixth, all})}).empty());
}

TEST_CASE("the guard says how a rank ended, its last call, and from where to resume") {
  SeenRank dead = rank_that(2, false, {sixth}, 'X');
  dead.end = "was killed by SIGKILL";
  put(dead.page.folder, "runs/a");
  put(dead.page.saved, "runs/a/checkpoints/step-10");
  const std::string said = explain_end(dead, {rank_that(0, true, {sixth, seventh}), dead});
  says(said, "error: rank 2 on n1 was killed by SIGKILL in step 12\n  its last call: call 6 of ranks 0-3, all_gather");
  says(said, "rank 0 waits in call 7 of ranks 0-3");
  says(said, "resume from the newest checkpoint: --load runs/a/checkpoints/step-10; ");
  says(said, "chorale explain runs/a\n");
}

TEST_CASE("the guard says what keeps ranks that were asked to end, what is kept, and which rank never came") {
  SeenRank first = rank_that(0, true, {sixth}), second = rank_that(1, false, {sixth}, 'R');
  put(first.page.folder, "runs/a");
  put(first.page.saved, "runs/a/checkpoints/step-10");
  put(first.page.program, "build/chorale");
  CHECK(explain_request({second, first}, 4, "they may be killed") ==
        "warning: the ranks were asked to end; rank 0 on n0 is still in step 12\n"
        "  what is done is recorded: build/chorale report runs/a\n"
        "  to go on from the newest checkpoint: mpirun -n 4 build/chorale train --config runs/a/config.toml --load "
        "runs/a/checkpoints/step-10\n"
        "  ranks 2-3 never reached the guard: dead since the start, or late\n  they may be killed\n");
  first.state = 'X';
  CHECK(explain_request({second, first}, 2, "they may be killed") ==
        "warning: the ranks were asked to end; rank 1 on n0 is still in step 12\n  they may be killed\n");
  CHECK(explain_request({first}, 1, "they may be killed").empty());
  first.end = "was killed by SIGKILL";
  CHECK(explain_stop(first) == "stopped: the ranks were asked to end; in step 12, rank 0 on n0 was killed by SIGKILL");
}

TEST_CASE("the guard says which rank others wait for outside of calls") {
  SeenRank late = rank_that(2, false, {sixth}, 'R');
  late.page.pid = 77;
  CHECK(explain_late({late}, {rank_that(0, false, {sixth}), rank_that(1, false, {sixth})}, 60) ==
        "warning: ranks 0-1 have waited for 60.0 s\n"
        "  rank 2 on n1 is late: it computes, in step 12; its last call: call 6 of ranks 0-3, all_gather of 8 f32, ring: "
        "over\n"
        "  this may be long work, such as reading a large file, or an endless loop; to see it: gdb -p 77\n");
  CHECK(explain_late({late}, {}, 60).starts_with("warning: ranks of other hosts have waited for 60.0 s\n"));
}

TEST_CASE("only the newest calls are kept, and a call that is gone is not taken for another") {
  FlightPage page;
  FlightCall& call = page.calls[40 % FlightPage::kept];
  call.ticket = page.newest = 40;
  CHECK(page.last() == &call);
  CHECK(page.call(40 - FlightPage::kept) == nullptr);
  CHECK(newest_calls(page).size() == 1);
}

TEST_CASE("what guards say arrives unchanged, and anything else is refused") {
  GuardWords words{.host = "n1",
                   .asks = true,
                   .lost = "error: \x1b[1m\xff",
                   .exit_code = 3,
                   .verdict = Verdict{VerdictKind::hung, 3, "n1", "was killed by SIGKILL", "step 12", 3, 60.5},
                   .ends = "soon",
                   .holds = {2, 3},
                   .ranks = {rank_that(3, true, {sixth, seventh})}};
  words.ranks[0].page.supervised = 1;
  words.look = Look{.done = 7, .idled = 9, .any = 60, .ranks = 3, .here = 2, .stopped = 1, .traced = true};
  const GuardWords again = guard_words_in(to_text(words));
  CHECK(to_text(again) == to_text(words));
  CHECK(again.exit_code == 3);
  CHECK(guard_words_in(R"({"host": "a", "lost": "b"})").exit_code == 4);
  CHECK(again.verdict == words.verdict);
  CHECK(again.ends == "soon");
  CHECK(again.holds == std::vector<int>{2, 3});
  CHECK(again.ranks[0].page.supervised == 1);
  CHECK(!guard_words_in(R"({"host": "a", "lost": "b"})").verdict);
  CHECK_THROWS_AS(guard_words_in(R"({"host": "a", "verdict": {"kind": "bored"}})"), Error);
  CHECK(again.look->waiting == never);
  CHECK(again.look->any == 60);
  CHECK(again.ranks.at(0).page.last()->awaits == -1);
  for (const char* wrong : {"", "{", "[]", R"({"host": 3})", R"({"host": "a", "look": {}})",
                            R"({"host": "a", "ranks": [1]})", R"({"host": "a", "ranks": 4})"})
    CHECK_THROWS_AS(guard_words_in(wrong), Error);
}

TEST_CASE("flight recorders of several hosts are read back, each rank once") {
  const TemporaryFolder folder;
  const auto on = [&](const char* host, std::vector<SeenRank> ranks) {
    for (SeenRank& rank : ranks) put(rank.page.folder, folder.path().string());
    const SeenRank local = ranks.front();
    write_dump({.host = host, .lost = host, .ranks = std::move(ranks)}, local);
  };
  on("n0", {rank_that(0, true, {sixth}), rank_that(1, true, {sixth}), rank_that(2, false, {sixth}, 'T')});
  on("n1", {rank_that(3, true, {sixth}), rank_that(2, false, {sixth}, 'T')});
  const GuardWords all = read_dumps(folder.path());
  REQUIRE(all.ranks.size() == 4);
  for (int rank = 0; rank < 4; ++rank) CHECK(all.ranks[static_cast<std::size_t>(rank)].page.rank == rank);
  CHECK(all.lost == "n0");
}

TEST_CASE("each moment of silence counts by its own limit, and a pause begins anew") {
  Patience patience;
  Look look{.done = 1, .waiting = 4, .any = 4, .here = 2};
  patience.see(look, 1);  // the first look counts as progress
  for (int i = 0; i < 3; ++i) patience.see(look, 1);
  CHECK(patience.spent() == 0.75);
  look.blocked = 1;
  patience.see(look, 4);
  CHECK(patience.spent() == 0.85);
  CHECK(patience.seconds() == 7);
  Look paused = look;
  paused.stopped = 2;
  patience.see(paused, 100);
  CHECK(patience.spent() == 0);
  patience.see(look, 2);
  look.done = 2;
  patience.see(look, 2);
  CHECK(patience.seconds() == 0);
}

TEST_CASE("a list of ranks that is too long is marked, and names nobody") {
  char text[16];
  put_list(text, "0,4,8,12,16,20,24,28");
  CHECK(std::string(text) == "0,4,8,12,16,…");
  put_list(text, "0-3");
  CHECK(std::string(text) == "0-3");
}

TEST_CASE("a run hangs by its waits, unless somebody has paused or debugs it") {
  Look look{.waiting = 5, .any = 4, .here = 3};
  CHECK(look.limit() == 5);
  look.stopped = 1;
  CHECK(look.limit() == 4);
  look.stopped = 3;
  CHECK(look.limit() == never);
  look.stopped = 0;
  look.blocked = 1;
  CHECK(look.limit() == 50);
  look.traced = true;
  CHECK(look.limit() == never);
  look = {.here = 1};
  look.add({.done = 3, .waiting = 2, .any = 1, .here = 2, .stopped = 1});
  CHECK(look.limit() == 1);
  CHECK(Look{.here = 2}.limit() == never);
}

}  // namespace
}  // namespace chorale::test
