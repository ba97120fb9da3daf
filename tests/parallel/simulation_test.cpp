// The simulation of a step shares cores and links as simulation.hpp says.
#include "parallel/forecast/simulation.hpp"

#include "tests/catch.hpp"

namespace chorale::test {
namespace {

constexpr Speeds one_each{1, 1, 1, 1};

Script works(double seconds) {
  Script script;
  script.note(Work::product, seconds);
  script.settle();
  return script;
}

StepTime of_two(const Script& a, const Script& b, const forecast::Site& site,
                const std::vector<RankGroup>& groups = {{"dp", "dp", {0, 1}}}) {
  return simulate({&a, &b}, groups, site, one_each);
}

// Begins a call, works, and waits for the call.
Script overlapped(double work, double call, double on_cores = 0) {
  Script script;
  const int number = script.begin({.group = "dp", .seconds = call, .on_cores = on_cores});
  script.note(Work::product, work);
  script.wait(number);
  script.settle();
  return script;
}

}  // namespace

TEST_CASE("ranks that outnumber the cores of their machine share them") {
  CHECK(of_two(works(4), works(4), forecast::Site::one_host(2, 2)).seconds == Approx(4));
  const StepTime shared = of_two(works(4), works(2), forecast::Site::one_host(2, 1));
  CHECK(shared.seconds == Approx(6));  // both at half speed until 4 s, then rank 0 alone
  CHECK(shared.computes[1] == Approx(4));
  CHECK(of_two(works(4), works(4), {{0, 1}, {0, 1}, 1}).seconds == Approx(4));  // two machines
}

TEST_CASE("a call runs while its ranks compute, from the time when all have begun it") {
  const forecast::Site two_hosts{{0, 1}, {0, 1}, 1};
  CHECK(of_two(overlapped(4, 3), overlapped(4, 3), two_hosts).seconds == Approx(4));
  CHECK(of_two(overlapped(1, 3), overlapped(2, 3), two_hosts).seconds == Approx(3));
  Script late;
  late.note(Work::product, 2);
  late.wait(late.begin({.group = "dp", .seconds = 3}));
  CHECK(of_two(overlapped(1, 3), late, two_hosts).seconds == Approx(5));
}

TEST_CASE("a rank divides its core between its work and its calls to other hosts, as far as these need cores") {
  const forecast::Site two_hosts{{0, 1}, {0, 1}, 1};
  const auto seconds = [&](double work, double on_cores, const forecast::Site& site) {
    const Script both = overlapped(work, 3, on_cores);
    return of_two(both, both, site).seconds;
  };
  CHECK(seconds(4, 0, two_hosts) == Approx(4));
  CHECK(seconds(4, 1, two_hosts) == Approx(7));
  // For 3.75 s the work goes on at 1 / 1.5 of its speed, the call at 1 / (0.5 + 0.5 · 1.5).
  CHECK(seconds(4, 0.5, two_hosts) == Approx(5.25));
  CHECK(seconds(0, 1, {{0, 1}, {0, 0}, 1}) == Approx(3));  // its price counts that its ranks share a core
}

TEST_CASE("calls between hosts share the links, calls on a host share the cores") {
  const std::vector<RankGroup> pairs{{"dp", "dp", {0, 2}}, {"dp", "dp", {1, 3}}};
  const Script one = overlapped(0, 3);
  const std::vector<const Script*> four{&one, &one, &one, &one};
  CHECK(simulate(four, pairs, {{0, 0, 1, 1}, {0, 0, 1, 1}, 2}, one_each).seconds == Approx(6));
  CHECK(simulate(four, pairs, {{0, 1, 2, 3}, {0, 1, 2, 3}, 2}, one_each).seconds == Approx(3));
  CHECK(simulate(four, pairs, forecast::Site::one_host(4, 2), one_each).seconds == Approx(6));
  CHECK(simulate(four, pairs, forecast::Site::one_host(4, 4), one_each).seconds == Approx(3));
}

TEST_CASE("a short message moves at once, a long one when both ends have begun it") {
  const auto message = [](bool waits) {
    Script sender, receiver;
    sender.begin({"pp", 0, 1, 2, waits});
    sender.note(Work::product, 5);
    sender.settle();
    receiver.note(Work::product, 3);
    receiver.wait(receiver.begin({"pp", 0, 1, 2, waits}));
    receiver.note(Work::product, 4);
    receiver.settle();
    return of_two(sender, receiver, {{0, 1}, {0, 1}, 1}, {{"pp", "pp", {0, 1}}}).seconds;
  };
  CHECK(message(false) == Approx(7));
  CHECK(message(true) == Approx(9));
}

TEST_CASE("a rank that waits for a call that nobody else begins is an error") {
  const Script waits = overlapped(1, 1), none = works(1);
  CHECK_THROWS_WITH(of_two(waits, none, forecast::Site::one_host(2, 2)), says("rank 0 waits forever"));
}

}  // namespace chorale::test
