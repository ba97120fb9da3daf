// An expression tree describes the order in which an algorithm adds values. Algorithms with equal trees give bit-identical
// results.
#include "collectives/analysis/reduction_order.hpp"

#include "tests/catch.hpp"
#include "tests/collectives/schedule/planning.hpp"

using namespace chorale;
using test::named;

namespace {

std::vector<std::string> orders_of(const std::string& name, int size, std::int64_t count, bool in_place = false) {
  Expressions sums;
  const Problem problem = Problem::even(Collective::all_reduce, count, size, 0, in_place);
  const auto orders = reduction_order(plan_all_ranks(named(Collective::all_reduce, name), problem), sums);
  std::vector<std::string> first;
  for (const int expression : orders.at(0)) first.push_back(sums.text(expression));
  for (const auto& order : orders) CHECK(order == orders[0]);  // the results of all ranks are bit-identical
  return first;
}

using Sums = std::vector<std::string>;

std::vector<Sums> classes_of(int size, Rounding rounding) {
  std::vector<Sums> classes;
  for (const auto& members : bitwise_classes(Problem::even(Collective::all_reduce, 2 * size, size), rounding)) {
    classes.emplace_back();
    for (const Algorithm* algorithm : members) classes.back().push_back(algorithm->name);
  }
  return classes;
}

bool together(const std::vector<Sums>& classes, const std::string& a, const std::string& b) {
  for (const Sums& names : classes)
    if (std::count(names.begin(), names.end(), a)) return std::count(names.begin(), names.end(), b) > 0;
  return false;
}

}  // namespace

TEST_CASE("sums are written with the lowest rank first, and equal sums get the same number") {
  Expressions sums;
  const int a = sums.leaf(0), b = sums.leaf(1), c = sums.leaf(2);
  CHECK(sums.sum({b, a}) == sums.sum({a, b}));
  CHECK(sums.text(sums.sum({c, sums.sum({b, a})})) == "((r0 + r1) + r2)");
  CHECK(sums.sum({a, b, c}) != sums.sum({sums.sum({a, b}), c}));  // in 16-bit types, the second sum is rounded twice
  CHECK(sums.sum({a, c, b}) != sums.sum({a, b, c}));
  CHECK(sums.sum({b, a, c}) == sums.sum({a, b, c}));
  Expressions wide(Rounding::every_addition);
  const int x = wide.leaf(0), y = wide.leaf(1), z = wide.leaf(2);
  CHECK(wide.sum({x, y, z}) == wide.sum({z, wide.sum({y, x})}));
  CHECK(wide.sum({x, y, z}) != wide.sum({x, wide.sum({y, z})}));
  CHECK(wide.in_rank_order(wide.sum({x, y, z})));
  CHECK_FALSE(wide.in_rank_order(wide.sum({x, wide.sum({y, z})})));
  CHECK_FALSE(wide.in_rank_order(wide.sum({wide.sum({x, z}), y})));
}

TEST_CASE("the order of additions is that of the algorithm") {
  for (const bool in_place : {false, true}) {
    CHECK(orders_of("recursive_doubling", 4, 1, in_place) == Sums{"((r0 + r1) + (r2 + r3))"});
    CHECK(orders_of("binomial_tree", 4, 1, in_place) == Sums{"((r0 + r1) + (r2 + r3))"});
    CHECK(orders_of("rabenseifner", 4, 4, in_place) == Sums(4, "((r0 + r2) + (r1 + r3))"));
    CHECK(orders_of("one_shot", 3, 2, in_place) == Sums(2, "(r0 + r1 + r2)"));
    CHECK(orders_of("ring", 4, 4, in_place) ==
          Sums{"(r0 + ((r1 + r2) + r3))", "((r0 + (r2 + r3)) + r1)", "(((r0 + r3) + r1) + r2)", "(((r0 + r1) + r2) + r3)"});
  }
}

TEST_CASE("one-shot and direct add in rank order for any number of ranks; a ring does only for two") {
  for (int size = 2; size <= 12; ++size) {
    Expressions sums;
    const Problem problem = Problem::even(Collective::all_reduce, 2 * size, size);
    const auto in_order = [&](const char* name) {
      for (const auto& order : reduction_order(plan_all_ranks(named(Collective::all_reduce, name), problem), sums))
        for (const int expression : order)
          if (!sums.in_rank_order(expression) || sums.ranks(expression).size() != static_cast<std::size_t>(size))
            return false;
      return true;
    };
    INFO(size << " ranks");
    CHECK(in_order("one_shot"));
    CHECK(in_order("direct"));
    CHECK(in_order("ring") == (size == 2));
  }
}

TEST_CASE("algorithms are bitwise equal if and only if they add in the same order") {
  for (const Rounding rounding : {Rounding::once_a_step, Rounding::every_addition}) {
    const auto four = classes_of(4, rounding);
    CHECK(together(four, "recursive_doubling", "binomial_tree"));
    CHECK(together(four, "one_shot", "direct"));
    CHECK_FALSE(together(four, "one_shot", "ring"));
    CHECK_FALSE(together(four, "recursive_doubling", "rabenseifner"));
    CHECK(together(classes_of(2, rounding), "ring", "one_shot"));
  }
  CHECK(classes_of(2, Rounding::once_a_step).size() == 1);  // x + y and y + x are the same tree
}

TEST_CASE("collectives without sums have no order to show") {
  const auto show = [](Collective what, const char* name) {
    return describe_reduction_order(plan_all_ranks(named(what, name), Problem::even(what, 8, 4)), 8);
  };
  CHECK(show(Collective::all_gather, "ring").empty());
  CHECK(show(Collective::all_reduce, "one_shot") == "  [0..8)    (r0 + r1 + r2 + r3), in rank order\n");
  const auto ring = plan_all_ranks(named(Collective::all_reduce, "ring"), Problem::even(Collective::all_reduce, 8, 4));
  CHECK(describe_reduction_order(ring, 1) == "  [0..2)    (r0 + ((r1 + r2) + r3))\n  … and 6 more elements\n");
}
