#include <array>

#include "tests/math/cuda/gpu.hpp"

using namespace chorale;

TEST_CASE("device: products with and without bias, and outer products, match the host's", "[gpu]") {
  Gpu gpu;
  if (!gpu) return;
  const auto host = fast_numerics();
  const auto of = [&](const Queue& queue) -> Numerics& { return queue.device ? gpu.numerics() : *host; };
  for (const DType dtype : floating_dtypes)
    for (const auto& [m, k, n] :
         {std::tuple{1, 1, 1}, std::tuple{3, 17, 9}, std::tuple{64, 32, 48}, std::tuple{33, 70, 101}}) {
      INFO(name_of(dtype) << " " << m << " " << k << " " << n);
      Desk desk;
      SumSite site;
      const Tensor x = desk.random({m, k}, dtype), w = desk.random({k, n}, dtype), turned = desk.random({n, k}, dtype);
      const Tensor bias = desk.random({n}, dtype), y = desk.random({m, n}, dtype), dy = desk.random({m, n}, dtype);
      const DType wide = host->gradient_type(dtype);
      const Tensor y_wide = desk.random({m, n}, wide), dw = desk.random({k, n}, wide);
      for (const Tensor& out : {y, y_wide}) {
        gpu.compare({x, w, bias, out}, tolerance(dtype),
                    [&](const auto& t, const Queue& queue) { of(queue).product(t[0], t[1], false, &t[2], t[3], queue); });
        gpu.compare({x, turned, out}, tolerance(dtype), [&](const auto& t, const Queue& queue) {
          of(queue).partial_product(t[0], t[1], true, 1, t[2], site, queue);
        });
      }
      gpu.compare({x, dy, dw}, tolerance(dtype),
                  [&](const auto& t, const Queue& queue) { of(queue).add_outer(t[0], t[1], 1, t[2], site, queue); });
      gpu.compare({y, dy}, 0, [&](const auto& t, const Queue& queue) { of(queue).settle(t[0], t[1], site, queue); });
    }
}

TEST_CASE("device: losses and squares are summed in f64, with the same bits every time", "[gpu]") {
  Gpu gpu;
  if (!gpu) return;
  const auto host = fast_numerics();
  for (const DType dtype : {DType::f32, DType::f64})
    for (const std::int64_t count : {1, 255, 4099, 30000}) {
      INFO(name_of(dtype) << " " << count);
      Desk desk;
      SumSite site;
      const Tensor values = desk.random({count}, dtype), total = desk.filled({1}, DType::f64, 3);
      gpu.compare({values, total}, 1e-13, [&](const auto& t, const Queue& queue) {
        (queue.device ? gpu.numerics() : *host).add_losses(t[0], t[1], site, queue);
      });
      const Tensor there = gpu.sent(values);
      SquareSum here{.fast = 7};
      host->add_squares(std::array{ScaledSlice{values.slice(), 0.3}}, here, {});
      std::vector<double> sums;
      for (int again = 0; again < 2; ++again) {
        const Tensor sum = gpu.sent(desk.filled({1}, DType::f64, 7));
        SquareSum grows{.there = sum.slice().data};
        gpu.numerics().add_squares(std::array{ScaledSlice{there.slice(), 0.3}}, grows, gpu.queue());
        sums.push_back(doubles(gpu.fetched(desk, sum))[0]);
      }
      CHECK(sums[0] == Approx(here.fast).epsilon(1e-13));
      CHECK(sums[0] == sums[1]);
    }
}

TEST_CASE("device: the sum of squares covers more gradients than one launch takes", "[gpu]") {
  Gpu gpu;
  if (!gpu) return;
  Desk desk;
  const Tensor values = desk.random({30000}, DType::f32), there = gpu.sent(values),
               sum = gpu.sent(desk.filled({1}, DType::f64, 7));
  const auto cut = [](const Tensor& tensor) {
    std::vector<ScaledSlice> parts;
    for (std::int64_t first = 0; first < tensor.count(); first += parts.back().values.count) {
      const std::int64_t count = parts.size() == 40 ? 20000 : static_cast<std::int64_t>(parts.size() % 100);
      const std::int64_t left = tensor.count() - first;
      parts.push_back({tensor.slice().narrow(first, std::min(count, left)), 0.1 * static_cast<double>(parts.size())});
    }
    return parts;
  };
  REQUIRE(cut(values).size() > 200);
  SquareSum here{.fast = 7}, grows{.there = sum.slice().data};
  fast_numerics()->add_squares(cut(values), here, {});
  gpu.numerics().add_squares(cut(there), grows, gpu.queue());
  CHECK(doubles(gpu.fetched(desk, sum))[0] == Approx(here.fast).epsilon(1e-13));

  SquareSum exact_here, exact_there;
  exact_numerics()->add_squares(cut(values), exact_here, {});
  gpu.exact().add_squares(cut(there), exact_there, gpu.queue());
  CHECK((exact_here.exact == exact_there.exact));
}
