#include "experiments/bench/fit.hpp"

#include "tests/catch.hpp"

using namespace chorale;
using bench::Observed;

TEST_CASE("the fit recovers the cost model's parameters from times that the model predicts") {
  std::vector<Observed> samples;
  for (const double messages : {1.0, 2.0, 6.0})
    for (double bytes = 8; bytes < 1e8; bytes *= 10)
      for (const double reduced : {0.0, bytes})
        samples.push_back({{messages, bytes, reduced}, 2e-6 * messages + 1e-10 * bytes + 5e-11 * reduced});
  const Price usual{1e-6, 4e-10, 2e-10};
  const auto [price, gamma_found] = bench::fit(samples, usual);
  CHECK(gamma_found);
  CHECK((price.alpha > 1.99e-6 && price.alpha < 2.01e-6));
  CHECK((price.beta > 0.99e-10 && price.beta < 1.01e-10));
  CHECK((price.gamma > 4.9e-11 && price.gamma < 5.1e-11));
  CHECK(bench::fit({}, usual).price.alpha == 0);
}

TEST_CASE("gamma keeps its usual ratio to beta if the samples do not show that sums cost anything") {
  const Price usual{1e-6, 4e-10, 2e-10};
  std::vector<Observed> samples;
  for (const double messages : {1.0, 2.0, 6.0})
    for (double bytes = 8; bytes < 1e8; bytes *= 10)
      for (const double reduced : {0.0, bytes})  // because of noise, sums seem to take less time than copies
        samples.push_back({{messages, bytes, reduced}, 2e-6 * messages + 1e-10 * bytes - 2e-11 * reduced});
  for (const bool sums : {true, false}) {
    for (Observed& sample : samples)
      if (!sums) sample.weights[2] = 0;
    const auto [price, gamma_found] = bench::fit(samples, usual);
    CHECK(!gamma_found);
    CHECK(price.gamma == price.beta / 2);
    CHECK((price.beta > 0.5e-10 && price.beta < 1.01e-10));
    CHECK((price.alpha > 1.9e-6 && price.alpha < 2.1e-6));
  }
}
