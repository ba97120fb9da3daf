// Tests the axes of charts. Ticks must be round and within the range, and labels must be distinct. Some values cannot be
// placed.
#include "experiments/common/scale.hpp"

#include <cmath>
#include <set>

#include "tests/catch.hpp"

using namespace chorale;
using enum Scale::Spacing;

namespace {

const double nothing = std::nan("");

std::vector<std::string> labels(const Scale& scale, std::size_t most) { return scale.labels(scale.ticks(most)); }

using Words = std::vector<std::string>;

}  // namespace

TEST_CASE("a symmetric axis shows both signs over many powers of ten, and has zero") {
  const Scale scale(symmetric, Unit::plain, {-0.5, 2e-6, 0.02, nothing});
  CHECK(labels(scale, 20) ==
        Words{"-0.1", "-0.01", "-0.001", "-0.0001", "-1e-05", "-1e-06", "0", "1e-06", "1e-05", "0.0001", "0.001", "0.01"});
  CHECK(scale.ticks(6).size() <= 7);
  CHECK((scale.place(-0.5) == 0 && scale.place(0.02) == 1));
  CHECK(std::abs(scale.place(2e-6) + scale.place(-2e-6) - 2 * scale.place(0)) < 1e-12);
  CHECK(scale.place(2e-6) - scale.place(0) > 0.02);  // this distance would be 4e-6 on a linear axis
  const Scale positive(symmetric, Unit::plain, {1e-7, 1e-3});
  CHECK((positive.place(0) == 0 && positive.ticks(10).front() == 0));
  const Scale zeros(symmetric, Unit::plain, {0, 0});
  CHECK((zeros.holds(0) && zeros.place(0) > 0 && zeros.place(0) < 1));
  CHECK_FALSE(zeros.holds(nothing));
}

TEST_CASE("linear ticks are 1, 2 or 5 times a power of ten, or of the unit's prefix") {
  CHECK(labels(Scale(linear, Unit::plain, {0, 10}), 5) == Words{"0", "2", "4", "6", "8", "10"});
  CHECK(labels(Scale(linear, Unit::seconds, {0, 0.0617}), 6) == Words{"0 s", "20 ms", "40 ms", "60 ms"});
  CHECK(labels(Scale(linear, Unit::bytes, {0, 45 * 0x1p20}), 5) == Words{"0 B", "10 MiB", "20 MiB", "30 MiB", "40 MiB"});
  CHECK(labels(Scale(linear, Unit::plain, {-3, 3}), 6) == Words{"-3", "-2", "-1", "0", "1", "2", "3"});
  for (const double high : {1e-300, 3.7e-9, 0.1, 1.0, 7.3, 4711.0, 1e200}) {
    const Scale scale(linear, Unit::plain, {0, high});
    const auto ticks = scale.ticks(6);
    CHECK((ticks.size() >= 2 && ticks.size() <= 7));
    for (const double tick : ticks) CHECK((scale.place(tick) >= -1e-6 && scale.place(tick) <= 1 + 1e-6));
  }
}

TEST_CASE("ticks of whole numbers are whole") {
  CHECK(Scale(linear, Unit::plain, {1, 2, 6}).ticks(10) == std::vector<double>{1, 2, 3, 4, 5, 6});
  CHECK(Scale(linear, Unit::plain, {1, 2, 2.5}).ticks(10)[1] == Approx(1.2));
  CHECK(Scale(linear, Unit::plain, {1, 4, 8}).ticks(3) ==
        std::vector<double>{2, 4, 6, 8});  // with space for three ticks, 5 must not be the only tick
}

TEST_CASE("logarithmic ticks are powers of ten (of two for bytes), with ticks between if there are few powers") {
  CHECK(labels(Scale(logarithmic, Unit::seconds, {2e-6, 0.5}), 6) == Words{"10 µs", "100 µs", "1 ms", "10 ms", "100 ms"});
  CHECK(labels(Scale(logarithmic, Unit::bytes, {1024, 0x1p20}), 6) ==
        Words{"1 KiB", "4 KiB", "16 KiB", "64 KiB", "256 KiB", "1 MiB"});
  CHECK(labels(Scale(logarithmic, Unit::plain, {2, 70}), 6) == Words{"2", "5", "10", "20", "50"});
  CHECK(labels(Scale(logarithmic, Unit::plain, {2, 7}), 6) == Words{"2", "3", "4", "5", "6", "7"});  // not 1 or 10
  const Scale scale(logarithmic, Unit::plain, {1, 100});
  CHECK(scale.place(10) == Approx(0.5));
  CHECK((!scale.holds(0) && !scale.holds(-1) && !scale.holds(nothing)));
}

TEST_CASE("axes can have one value, equal values or no values") {
  const Scale one(linear, Unit::plain, {5});
  CHECK((one.low() < 5 && one.high() > 5 && one.place(5) == Approx(0.5)));
  const Scale equal(logarithmic, Unit::seconds, {1e-3, 1e-3, nothing, 0});
  CHECK((equal.low() < 1e-3 && equal.high() > 1e-3 && equal.place(1e-3) == Approx(0.5)));
  const Scale zero(linear, Unit::plain, {0, 0});
  CHECK((zero.low() < 0 && zero.high() > 0));
  const Scale none(linear, Unit::plain, {nothing, HUGE_VAL});
  CHECK((none.low() == 0 && none.high() == 1));
  CHECK(Scale(logarithmic, Unit::plain, {-1, 0}).ticks(5).size() >= 1);
}

TEST_CASE("neighboring labels differ") {
  for (const auto& values : {std::vector{1.23456, 1.23459}, std::vector{1e6, 1e6 + 3}, std::vector{0.999, 1.001}}) {
    const auto words = labels(Scale(linear, Unit::seconds, values), 5);
    CHECK(std::set<std::string>(words.begin(), words.end()).size() == words.size());
  }
}

TEST_CASE("quantities have the prefix that makes them shortest") {
  CHECK(quantity(0.00012, Unit::seconds) == "120 µs");
  CHECK(quantity(0.99999, Unit::seconds) == "1 s");
  CHECK(quantity(0.0009999, Unit::seconds) == "1 ms");
  CHECK(quantity(1536, Unit::bytes) == "1.5 KiB");
  CHECK(quantity(1000, Unit::bytes) == "1000 B");
  CHECK(quantity(2.5e9, Unit::bytes_per_second) == "2.5 GB/s");
  CHECK(quantity(0.1234, Unit::percent) == "12.3 %");
  CHECK(quantity(0.0004, Unit::percent, 2) == "0.04 %");
  CHECK(quantity(0.40, Unit::percent, 2) == "40 %");
  CHECK(quantity(1, Unit::percent, 2) == "100 %");
  CHECK(quantity(0, Unit::percent) == "0 %");
  CHECK(quantity(4711, Unit::plain, 4) == "4711");
  CHECK(quantity(4711, Unit::plain) == "4711");
  CHECK(quantity(1234567, Unit::plain) == "1.23 M");
  CHECK(quantity(nothing, Unit::seconds) == "-");
  CHECK(quantity(-0.02, Unit::seconds) == "-20 ms");
}
