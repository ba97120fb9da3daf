#include "src/math/column_sums.hpp"
#include "tests/math/cuda/gpu.hpp"

using namespace chorale;

TEST_CASE("device: norms and all their gradients match the host's", "[gpu]") {
  Gpu gpu;
  if (!gpu) return;
  for (const DType dtype : floating_dtypes)
    for (const NormKind kind : {NormKind::layer, NormKind::rms})
      for (const std::int64_t width : device_sizes) {
        INFO(name_of(dtype) << " width " << width << (kind == NormKind::layer ? " layer" : " rms"));
        Desk desk;
        const std::int64_t rows = width > 1000 ? 3 : 70;
        const auto tensor = [&] { return desk.random({rows, width}, dtype, 3); };
        const Tensor x = tensor(), y = tensor(), dy = tensor(), dx = tensor(), added = tensor();
        const Tensor gain = desk.random({width}, dtype), shift = desk.random({width}, dtype);
        const Tensor stats = desk.random({rows, 2}, statistic_of(dtype));
        const double near = 4 * nearness(dtype);
        gpu.compare({x, gain, shift, y, stats}, near, [&](const auto& t, const Queue& queue) {
          norm_forward(kind, t[0], t[1], &t[2], 1e-5, t[3], t[4], queue);
        });
        gpu.compare({x, gain, y, stats}, near, [&](const auto& t, const Queue& queue) {
          norm_forward(kind, t[0], t[1], nullptr, 1e-5, t[2], t[3], queue);
        });
        norm_forward(kind, x, gain, &shift, 1e-5, y, stats, {});
        gpu.compare({dy, x, gain, stats, added, dx}, near, [&](const auto& t, const Queue& queue) {
          norm_backward(kind, t[0], t[1], t[2], t[3], &t[4], t[5], queue);
          norm_backward(kind, t[0], t[1], t[2], t[3], nullptr, t[0], queue);
          norm_backward(kind, t[0], t[1], t[2], t[3], &t[4], t[4],
                        queue);  // the output can be the same tensor as the added tensor
        });
        const Tensor dgain = desk.random({width}, statistic_of(dtype)), dshift = desk.random({width}, statistic_of(dtype));
        gpu.compare({dy, x, stats, dgain, dshift}, tolerance(dtype), [&](const auto& t, const Queue& queue) {
          add_norm_gradients(t[0], t[1], t[2], t[3], &t[4], queue);
          add_norm_gradients(t[0], t[1], t[2], t[3], nullptr, queue);
        });
      }
}

TEST_CASE("device: sums of columns and table rows match the host's, with the same bits every time", "[gpu]") {
  Gpu gpu;
  if (!gpu) return;
  for (const DType dtype : floating_dtypes)
    for (const auto& [rows, width] : {std::pair{1, 1}, std::pair{65, 24}, std::pair{700, 33}, std::pair{9, 2055}}) {
      INFO(name_of(dtype) << " " << rows << " " << width);
      Desk desk;
      const Tensor dy = desk.random({rows, width}, dtype), db = desk.random({width}, statistic_of(dtype));
      gpu.compare({dy, db}, tolerance(dtype), [](const auto& t, const Queue& queue) { add_columns(t[0], t[1], queue); });
      const Tensor first = gpu.sent(db), second = gpu.sent(db), there = gpu.sent(dy);
      add_columns(there, first, gpu.queue());
      add_columns(there, second, gpu.queue());
      CHECK(same_bits(gpu.fetched(desk, first), gpu.fetched(desk, second)));

      const Tensor ids = desk.empty({rows}, DType::i32), table = desk.random({20, width}, statistic_of(dtype));
      // Some ids repeat, others are outside the table.
      for (std::int64_t row = 0; row < rows; ++row) put(ids, row, row * row % 31);
      gpu.compare({ids, dy, table}, 0, [](const auto& t, const Queue& queue) { add_rows(t[0], 3, t[1], t[2], queue); });
    }
}
