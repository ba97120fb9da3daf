// Tests medians, and comparisons of blocks (a block is a launch or a repetition). Results are checked against published
// tables, and on simulated measurements in which launches differ. The false-alarm rate must not exceed the documented rate,
// and real differences must be detected.
#include "experiments/common/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <random>

#include "tests/catch.hpp"

using namespace chorale;

namespace {

ByBlock blocks(const std::vector<double>& values, const std::string& prefix = "") {
  ByBlock named;
  for (std::size_t i = 0; i < values.size(); ++i) named[prefix + std::to_string(100 + i)] = values[i];
  return named;
}

ByBlock exponentials(const std::vector<double>& logs, const std::string& prefix = "") {
  std::vector<double> values;
  for (const double log : logs) values.push_back(std::exp(log));
  return blocks(values, prefix);
}

// Simulates a realistic machine. The times of launches differ by several percent, and the times of calls differ by more. The
// times of calls are not independent, because a slow period lasts for many calls.
class NoisyMachine {
 public:
  explicit NoisyMachine(unsigned seed) : random_(seed) {}
  double gauss(double deviation) { return deviation * normal_(random_); }

  // Simulates a launch and returns the median time of its calls. The times of all calls are multiplied by `slower`.
  double launch(double slower = 1) {
    const double effect = gauss(0.06);
    double mood = 0;
    std::vector<double> calls;
    for (int call = 0; call < 60; ++call) {
      mood = 0.9 * mood + gauss(0.03);
      calls.push_back(slower * std::exp(effect + mood + std::abs(gauss(0.1))));
    }
    return summarize(calls).median;
  }
  ByBlock launches(std::size_t count, const std::string& prefix, double slower = 1) {
    std::vector<double> medians;
    for (std::size_t i = 0; i < count; ++i) medians.push_back(launch(slower));
    return blocks(medians, prefix);
  }

 private:
  std::mt19937 random_;
  std::normal_distribution<double> normal_;
};

// Returns the fraction of trials that succeed.
template <class Trial>
double share(int trials, Trial&& trial) {
  int found = 0;
  for (int i = 0; i < trials; ++i) found += trial();
  return static_cast<double>(found) / trials;
}

bool finds_one(std::vector<double> p) {
  correct_by_holm(p);
  return std::ranges::any_of(p, [](double value) { return value < significant; });
}

// The allowed rate is one in twenty, plus three standard deviations for this number of trials.
void check_one_in_twenty(double rate, int trials) {
  const double open = 3 * std::sqrt(significant * (1 - significant) / trials);
  INFO(rate << " of " << trials);
  CHECK(rate <= significant + open);
}

}  // namespace

TEST_CASE("the typical time of calls with two modes is their lower quartile, and its interval is their range") {
  const auto calls = [](int fast, double seconds, double stalled) {
    std::vector<double> times;
    for (int i = 0; i < 20; ++i) times.push_back((i * 7 % 20 < fast ? seconds : stalled) * (1 + 0.001 * i));
    return times;
  };
  for (const auto& [of_one, of_other] : {std::pair{12, 8}, {8, 12}}) {  // the medians differ by a factor of 1000
    const auto times = typical_times({calls(of_one, 3e-6, 8e-3), calls(of_other, 4e-6, 8e-3)});
    CHECK(times[0].seconds == Approx(3e-6).epsilon(0.02));
    CHECK(times[1].seconds == Approx(4e-6).epsilon(0.02));
    CHECK(times[1].low / times[0].high < 1);  // within the noise
  }
  const auto apart = typical_times({calls(12, 1e-6, 1e-5), calls(20, 1e-3, 0)});
  CHECK(apart[1].low / apart[0].high > 1);  // even the slowest call of the first launch is faster
  const std::vector<double> quiet = calls(20, 3e-6, 0);
  const Summary same = summarize(quiet);
  const auto settled = typical_times({quiet, calls(20, 4e-6, 0)});
  CHECK((settled[0].seconds == same.median && settled[0].low == same.ci_low && settled[0].high == same.ci_high));
  CHECK(settled[1].low / settled[0].high > 1);
}

TEST_CASE("medians and their intervals match the tables of order statistics") {
  std::vector<double> samples;
  for (int i = 1; i <= 100; ++i) samples.push_back(i);
  std::shuffle(samples.begin(), samples.end(), std::mt19937(1));
  const auto s = summarize(samples);
  CHECK((s.median == 50.5 && s.ci_low == 40 && s.ci_high == 61));  // the 40th and 61st of 100 samples, as in the tables
  CHECK((s.p5 == 6 && s.p95 == 95 && s.p99 == 99 && s.max == 100));
  samples.resize(0);
  for (int i = 1; i <= 20; ++i) samples.push_back(i);
  CHECK((summarize(samples).ci_low == 6 && summarize(samples).ci_high == 15));
  const std::vector<double> three{3, 1, 2};
  CHECK((summarize(three).median == 2 && summarize(three).ci_low == 1 && summarize(three).ci_high == 3));
  const std::vector<double> six{1, 2, 3, 4, 5, 6}, five{1, 2, 3, 4, 5}, one{7};
  // The range of six samples covers the median with probability 1 − 2/2⁶ = 97 %. The range of five samples covers it with 1
  // − 2/2⁵ = 94 %.
  CHECK((summarize(six).has_interval && !summarize(five).has_interval));
  CHECK((summarize(one).median == 7 && summarize(one).p95 == 7));
}

TEST_CASE("Student's distribution matches the tables") {
  const std::tuple<double, double, double> table[] = {{12.7062, 1, 0.05},    {2.570582, 5, 0.05},  {4.032143, 5, 0.01},
                                                      {2.228139, 10, 0.05},  {1.812461, 10, 0.1},  {1.0, 1, 0.5},
                                                      {0.0, 7, 1.0},         {6.868827, 5, 0.001}, {2.042272, 30, 0.05},
                                                      {1.983972, 100, 0.05}, {31.8205, 1, 0.02},   {0.2602, 15, 0.7982}};
  for (const auto& [t, freedom, p] : table) {
    INFO(t << " with " << freedom);
    CHECK(t_tails(t, freedom) == Approx(p).epsilon(1e-4));
    CHECK(t_tails(-t, freedom) == Approx(t_tails(t, freedom)));
    if (t > 0) CHECK(t_value(p, freedom) == Approx(t).epsilon(1e-3));
  }
  for (const double t : {0.1, 1.0, 3.0, 30.0}) CHECK(t_tails(t, 1) == Approx(1 - 2 * std::atan(t) / M_PI).epsilon(1e-10));
  for (const double t : {0.1, 1.0, 3.0, 30.0}) CHECK(t_tails(t, 2) == Approx(1 - t / std::sqrt(2 + t * t)).epsilon(1e-10));
}

TEST_CASE("the paired test and Welch's test match R on Student's own data") {
  // R: t.test(extra ~ group, data = sleep), t = -1.8608, df = 17.776, p = 0.07939; paired: t = -4.0621, df = 9, p =
  // 0.002833, 95 % interval -2.4598858 to -0.7001142.
  const std::vector<double> one{0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0},
      other{1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4};
  const Contrast alone = contrast(exponentials(one, "a"), exponentials(other, "b"));
  CHECK((!alone.paired && alone.blocks == 10));
  CHECK(alone.p == Approx(0.07939).epsilon(1e-3));
  CHECK(std::log(alone.ratio) == Approx(1.58));
  const Contrast paired = contrast(exponentials(one), exponentials(other));
  CHECK((paired.paired && paired.blocks == 10));
  CHECK(paired.p == Approx(0.002833).epsilon(1e-3));
  CHECK(std::log(paired.low) == Approx(0.7001142).epsilon(1e-6));
  CHECK(std::log(paired.high) == Approx(2.4598858).epsilon(1e-6));
}

TEST_CASE("blocks are paired by name, and too few pairs give no p-value") {
  ByBlock one = blocks({1, 1, 1, 1, 1, 1, 1}), other = blocks({2, 2.1, 1.9, 2, 2.05, 1.95});
  CHECK(contrast(one, other).blocks == 6);
  CHECK(contrast(one, other).p < 1e-6);
  CHECK(contrast(one, other).ratio == Approx(2).epsilon(0.01));
  other.erase("100");
  const Contrast few = contrast(one, other);
  CHECK((few.blocks == 5 && !few.enough() && std::isnan(few.p) && std::isnan(few.low)));
  CHECK(few.ratio == Approx(2).epsilon(0.02));
  CHECK(!contrast(blocks({1, 2, 3, 4, 5, 6}, "a"), blocks({1, 2, 3, 4, 5}, "b")).enough());
  CHECK(contrast(one, one).p == 1);  // a record compared with itself
  CHECK(contrast(one, one).ratio == 1);
  CHECK(std::isnan(contrast(blocks({0, 0, 0, 0, 0, 0}), blocks({1, 1, 1, 1, 1, 1})).p));
  CHECK(std::isnan(contrast({}, one).ratio));
}

TEST_CASE("Holm's correction matches R's p.adjust") {
  std::vector<double> p{0.03, 0.01, std::nan(""), 0.02, 0.04};
  correct_by_holm(p);
  CHECK(p[1] == Approx(0.04));
  CHECK((p[3] == Approx(0.06) && p[0] == Approx(0.06) && p[4] == Approx(0.06)));
  CHECK(std::isnan(p[2]));
  p = {0.9, 0.6};
  correct_by_holm(p);
  CHECK((p[0] == 1 && p[1] == 1));
}

TEST_CASE("launches of one program raise a false alarm in at most one comparison in twenty") {
  constexpr int trials = 1000;
  NoisyMachine machine(1);
  const auto apart = [&] { return contrast(machine.launches(6, "a"), machine.launches(6, "b")).p; };
  const double alone = share(trials, [&] { return finds_one({apart()}); });
  check_one_in_twenty(alone, trials);
  CHECK(alone > 0.02);  // false alarms must be frequent enough for this test to detect a change
  check_one_in_twenty(share(trials / 4,
                            [&] {
                              return finds_one({apart(), apart(), apart(), apart(), apart(), apart()});
                            }),
                      trials / 4);
}

TEST_CASE("if launches alternate, false alarms, power and intervals are right on a drifting machine") {
  constexpr int trials = 1000;
  NoisyMachine machine(2);
  const auto alternate = [&](double slower) {
    double drift = 0;
    std::vector<double> one, other;
    for (int launch = 0; launch < 6; ++launch) {
      drift += 0.3 + machine.gauss(0.3);  // each launch takes longer than the previous one, by a factor of about e^0.3
      one.push_back(std::exp(drift) * machine.launch());
      other.push_back(std::exp(drift) * machine.launch(slower));
    }
    return contrast(blocks(one), blocks(other));
  };
  const double alarms = share(trials, [&] { return alternate(1).p < significant; });
  check_one_in_twenty(alarms, trials);
  CHECK(alarms > 0.02);
  CHECK(share(200, [&] {
          const Contrast c = alternate(1.5);
          return c.p < significant && c.low > 1;
        }) > 0.99);
  const double covered = share(trials, [&] {
    const Contrast c = alternate(1.2);
    return c.low < 1.2 && c.high > 1.2;
  });
  CHECK(std::abs(covered - 0.95) < 0.03);
}

TEST_CASE("a slowdown by a fifth is found among several unchanged cases") {
  NoisyMachine machine(3);
  const double found = share(100, [&] {
    std::vector<double> p{contrast(machine.launches(8, "a"), machine.launches(8, "b", 1.2)).p};
    for (int same = 0; same < 5; ++same) p.push_back(contrast(machine.launches(8, "a"), machine.launches(8, "b")).p);
    correct_by_holm(p);
    return p[0] < significant;
  });
  CHECK(found > 0.95);
}

TEST_CASE("the fastest of equally fast variants is not called faster, although it was chosen for being fastest") {
  constexpr int trials = 1000;
  NoisyMachine machine(4);
  const auto equals = [&](std::size_t kinds) {
    std::vector<ByBlock> all;
    for (std::size_t kind = 0; kind < kinds; ++kind) {
      std::vector<double> times;
      for (int block = 0; block < 6; ++block) times.push_back(std::exp(machine.gauss(0.05)));
      all.push_back(blocks(times));
    }
    std::ranges::sort(all, {}, [](const ByBlock& kind) { return summarize(kind).median; });
    return all;
  };
  check_one_in_twenty(share(trials,
                            [&] {
                              const auto p = p_from_the_first(equals(12));
                              return std::ranges::any_of(p, [](double value) { return value < significant; });
                            }),
                      trials);
  for (const std::size_t kinds : {2, 3, 8})
    check_one_in_twenty(share(trials, [&] { return p_of_being_first(equals(kinds)) < significant; }), trials);
  std::vector<ByBlock> one_ahead = equals(3);
  for (auto& [block, time] : one_ahead[0]) time /= 1.5;
  CHECK(p_of_being_first(one_ahead) < significant);
  CHECK((p_from_the_first(one_ahead)[0] == 1 && p_from_the_first(one_ahead)[2] < significant));
  one_ahead[2].clear();
  CHECK(std::isnan(p_of_being_first(one_ahead)));
}

TEST_CASE("a lower median is not called faster if launches have two speeds and their geometric mean says the opposite") {
  const ByBlock two_modes = blocks({1, 1, 1, 1, 1, 1, 100, 100, 100, 100, 100}, "a");
  const ByBlock steady = blocks({1.01, 1.02, 1.01, 1.02, 1.01, 1.02, 1.01, 1.02, 1.01, 1.02, 1.01}, "b");
  const Contrast means = contrast(two_modes, steady);
  REQUIRE((means.p < significant && means.ratio < 1 && summarize(two_modes).median < summarize(steady).median));
  CHECK(p_of_being_first({two_modes, steady}) == 1);
  CHECK(p_from_the_first({two_modes, steady})[1] == 1);
}
