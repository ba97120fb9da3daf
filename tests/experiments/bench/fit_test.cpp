#include "experiments/bench/fit.hpp"

#include "tests/catch.hpp"

using namespace chorale;
using bench::Observed;

TEST_CASE("the fit recovers the prices from the times that they produce") {
  std::vector<Observed> samples;
  for (const double messages : {1.0, 2.0, 6.0})
    for (double bytes = 8; bytes < 1e8; bytes *= 10)
      for (const double reduced : {0.0, bytes})
        samples.push_back({{messages, bytes, reduced}, 2e-6 * messages + 1e-10 * bytes + 5e-11 * reduced});
  const Price price = bench::fit(samples);
  CHECK((price.alpha > 1.99e-6 && price.alpha < 2.01e-6));
  CHECK((price.beta > 0.99e-10 && price.beta < 1.01e-10));
  CHECK((price.gamma > 4.9e-11 && price.gamma < 5.1e-11));
  for (Observed& sample : samples) sample.weights[2] = 0;
  CHECK(bench::fit(samples).gamma == 0);
  CHECK(bench::fit({}).alpha == 0);
}
