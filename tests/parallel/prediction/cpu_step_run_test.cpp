// Tests that a simulated step shares cores and links as cpu_step_run.hpp specifies.
#include "parallel/prediction/cpu_step_run.hpp"

#include "tests/catch.hpp"

namespace chorale::test {
namespace {

constexpr Speeds one_each{1, 1, 1, 1};

Script works(double seconds) {
  Script script;
  script.note({.work = Work::product, .amount = seconds});
  script.settle();
  return script;
}

StepTime of_two(const Script& a, const Script& b, const prediction::Site& site,
                const std::vector<RankGroup>& groups = {{"dp", "dp", {0, 1}}}) {
  return simulate({&a, &b}, groups, site, one_each);
}

// A script that begins a call, computes, and waits for the call. Between hosts, the call occupies the link for `link`
// seconds.
Script overlapped(double work, double call, double link = 100) {
  Script script;
  const int number = script.begin({.group = "dp", .seconds = call, .link = link});
  script.note({.work = Work::product, .amount = work});
  script.wait(number);
  script.settle();
  return script;
}

}  // namespace

TEST_CASE("ranks that outnumber the cores of their machine share them") {
  CHECK(of_two(works(4), works(4), prediction::Site::one_host(2, 2)).seconds == Approx(4));
  const StepTime shared = of_two(works(4), works(2), prediction::Site::one_host(2, 1));
  CHECK(shared.seconds == Approx(6));  // both run at half speed until 4 s, then rank 0 alone at full speed
  CHECK(shared.computes[1] == Approx(4));
  CHECK(of_two(works(4), works(4), {{0, 1}, {0, 1}, 1}).seconds == Approx(4));  // the ranks are on two machines
}

TEST_CASE("a call runs while its ranks compute, from the time when all have begun it") {
  const prediction::Site two_hosts{{0, 1}, {0, 1}, 1};
  CHECK(of_two(overlapped(4, 3), overlapped(4, 3), two_hosts).seconds == Approx(4));
  CHECK(of_two(overlapped(1, 3), overlapped(2, 3), two_hosts).seconds == Approx(3));
  Script late;
  late.note({.work = Work::product, .amount = 2});
  late.wait(late.begin({.group = "dp", .seconds = 3}));
  CHECK(of_two(overlapped(1, 3), late, two_hosts).seconds == Approx(5));
}

TEST_CASE("a rank divides its core between its work and its calls to other hosts, as far as these need cores") {
  const prediction::Site two_hosts{{0, 1}, {0, 1}, 1};
  const auto seconds = [&](double work, double link, const prediction::Site& site) {
    const Script both = overlapped(work, 3, link);
    return of_two(both, both, site).seconds;
  };
  CHECK(seconds(4, 3, two_hosts) == Approx(4));
  CHECK(seconds(4, 0, two_hosts) == Approx(7));
  CHECK(seconds(4, 1.5, two_hosts) == Approx(5.5));        // 4 s of work and 1.5 s of the call need a core
  CHECK(seconds(0, 0, {{0, 1}, {0, 0}, 1}) == Approx(3));  // the cost already assumes that the call's ranks share a core
  // Only one rank sends to the other host. Its call occupies the link all the time.
  const Script sends = overlapped(4, 3, 3), does_not = overlapped(4, 3, 0);
  CHECK(of_two(sends, does_not, two_hosts).seconds == Approx(4));
  CHECK(of_two(does_not, sends, two_hosts).seconds == Approx(4));
}

TEST_CASE("calls between hosts share the links, calls on a host share the cores") {
  const std::vector<RankGroup> pairs{{"dp", "dp", {0, 2}}, {"dp", "dp", {1, 3}}};
  const Script one = overlapped(0, 3);
  const std::vector<const Script*> four{&one, &one, &one, &one};
  CHECK(simulate(four, pairs, {{0, 0, 1, 1}, {0, 0, 1, 1}, 2}, one_each).seconds == Approx(6));
  CHECK(simulate(four, pairs, {{0, 1, 2, 3}, {0, 1, 2, 3}, 2}, one_each).seconds == Approx(3));
  CHECK(simulate(four, pairs, prediction::Site::one_host(4, 2), one_each).seconds == Approx(6));
  CHECK(simulate(four, pairs, prediction::Site::one_host(4, 4), one_each).seconds == Approx(3));
}

TEST_CASE("a short message moves at once, a long one when both ends have begun it") {
  const auto message = [](bool waits) {
    Script sender, receiver;
    sender.begin({"pp", 0, 1, 2, waits, 2});
    sender.note({.work = Work::product, .amount = 5});
    sender.settle();
    receiver.note({.work = Work::product, .amount = 3});
    receiver.wait(receiver.begin({"pp", 0, 1, 2, waits, 2}));
    receiver.note({.work = Work::product, .amount = 4});
    receiver.settle();
    return of_two(sender, receiver, {{0, 1}, {0, 1}, 1}, {{"pp", "pp", {0, 1}}}).seconds;
  };
  CHECK(message(false) == Approx(7));
  CHECK(message(true) == Approx(9));
}

TEST_CASE("a rank that waits for a call that nobody else begins is an error") {
  const Script waits = overlapped(1, 1), none = works(1);
  CHECK_THROWS_WITH(of_two(waits, none, prediction::Site::one_host(2, 2)), says("rank 0 waits forever"));
}

}  // namespace chorale::test
