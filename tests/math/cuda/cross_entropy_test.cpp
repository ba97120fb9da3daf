#include "src/math/cross_entropy.hpp"

#include "tests/math/cuda/gpu.hpp"

using namespace chorale;

TEST_CASE("device: the loss of a part of a vocabulary and its gradient match the host's", "[gpu]") {
  Gpu gpu;
  if (!gpu) return;
  const auto host = fast_numerics();
  for (const DType dtype : floating_dtypes)
    for (const std::int64_t columns : {1, 40, 515, 4104}) {
      INFO(name_of(dtype) << " " << columns);
      Desk desk;
      SumSite site;
      const std::int64_t rows = 9, first = 30;
      const DType wide = statistic_of(dtype);
      const Tensor logits = desk.random({rows, columns}, dtype, 4), targets = desk.empty({rows}, DType::i32);
      for (std::int64_t row = 0; row < rows; ++row)
        put(targets, row, row == 4 ? -1 : 25 + row);  // some targets are in vocabulary parts of other ranks
      const auto one = [&] { return desk.random({rows}, wide); };
      const Tensor maxima = one(), sums = one(), hits = one(), losses = one();
      gpu.compare({logits, maxima}, 0, [](const auto& t, const Queue& queue) { row_maxima(t[0], t[1], queue); });
      row_maxima(logits, maxima, {});
      gpu.compare({logits, maxima, sums}, 1e-5, [&](const auto& t, const Queue& queue) {
        (queue.device ? gpu.numerics() : *host).sum_exponentials(t[0], t[1], t[2], site, queue);
      });
      host->sum_exponentials(logits, maxima, sums, site, {});
      gpu.compare({logits, targets, hits}, 0,
                  [&](const auto& t, const Queue& queue) { target_logits(t[0], t[1], first, t[2], queue); });
      gpu.compare({maxima, sums, hits, targets, losses}, nearness(wide),
                  [](const auto& t, const Queue& queue) { token_losses(t[0], t[1], 0.5, t[2], t[3], t[4], queue); });
      gpu.compare({logits, maxima, sums, targets}, nearness(dtype), [&](const auto& t, const Queue& queue) {
        cross_entropy_gradient(t[0], t[1], t[2], 1, t[3], first, 0.1, queue);
      });
    }
}

TEST_CASE("device: the largest logit may be ±0 or NaN, and sums may be in fixed point", "[gpu]") {
  Gpu gpu;
  if (!gpu) return;
  Desk desk;
  const Tensor logits = desk.filled({3, 70}, DType::f32, -5), maxima = desk.random({3}, DType::f32);
  put(logits, 10, -0.0);
  put(logits, 60, 0.0);
  put(logits, 80, NAN);
  put(logits, 150, -INFINITY);
  gpu.compare({logits, maxima}, 0, [](const auto& t, const Queue& queue) { row_maxima(t[0], t[1], queue); });

  const Tensor sums = desk.filled({3}, DType::i64, 3 << 20), targets = desk.filled({3}, DType::i32, 7);
  const Tensor plain = desk.random({3, 70}, DType::f32), highest = desk.filled({3}, DType::f32, 1);
  gpu.compare({plain, highest, sums, targets}, 0, [](const auto& t, const Queue& queue) {
    cross_entropy_gradient(t[0], t[1], t[2], 0x1p-18, t[3], 0, 1, queue);
  });
}
