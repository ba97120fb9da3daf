// Tests the order of events in virtual time, and that activities which share a resource take the time that they need.
#include "src/simulation/max_min.hpp"

#include "tests/catch.hpp"

namespace chorale::test {
namespace {

using Reports = std::vector<std::pair<double, int>>;

Reports reports_of(Engine& engine) {
  Reports reports;
  engine.run([&](int id) { reports.emplace_back(engine.now(), id); });
  return reports;
}

}  // namespace

TEST_CASE("times are reached in order, and simultaneous ones in the order of their ids") {
  Engine engine;
  for (const auto& [time, id] : Reports{{2, 1}, {1, 7}, {1, 3}, {1, 3}, {0, 9}}) engine.at(time, id);
  CHECK(reports_of(engine) == Reports{{0, 9}, {1, 3}, {1, 3}, {1, 7}, {2, 1}});
}

TEST_CASE("what begins at a time is over at this time if it takes none, before time passes") {
  Engine engine(max_min({10}));
  Reports reports;
  int settled = 0;
  engine.at(1, 0);
  engine.at(2, 5);
  engine.run(
      [&](int id) {
        reports.emplace_back(engine.now(), id);
        if (id == 0) {
          engine.at(1, 1);
          engine.begin({2, 0, {{0}}});
        }
      },
      [&] { settled += engine.now() == 1; });
  CHECK(reports == Reports{{1, 0}, {1, 1}, {1, 2}, {2, 5}});
  CHECK(settled == 2);
}

TEST_CASE("activities share a resource from when they begin until they are over") {
  Engine engine(max_min({10}));
  engine.begin({1, 100, {{0}}});
  engine.at(2, 0);
  Reports reports;
  engine.run([&](int id) {
    reports.emplace_back(engine.now(), id);
    if (id == 0) engine.begin({2, 40, {{0}}});
  });
  REQUIRE(reports.size() == 3);
  CHECK((reports[1].second == 2 && reports[1].first == Approx(10)));  // 40 at 5 per second
  CHECK((reports[2].second == 1 && reports[2].first == Approx(14)));  // 20 alone, 40 beside the other, 40 alone
}

TEST_CASE("equal activities are over at the same time, in the order of their ids") {
  Engine engine(max_min({3}));
  for (const int id : {5, 4, 6}) engine.begin({id, 7, {{0}}});
  CHECK(reports_of(engine) == Reports{{7, 4}, {7, 5}, {7, 6}});
}

TEST_CASE("a sharing of one's own sets the rates") {
  Engine engine([](std::vector<Activity>& activities) {
    for (Activity& one : activities) one.rate = one.id;
  });
  engine.begin({2, 8});
  engine.begin({4, 8});
  CHECK(reports_of(engine) == Reports{{2, 4}, {4, 2}});
}

TEST_CASE("if nothing happens, no time passes") {
  Engine engine(max_min({1}));
  CHECK(reports_of(engine).empty());
  CHECK(engine.now() == 0);
}

}  // namespace chorale::test
