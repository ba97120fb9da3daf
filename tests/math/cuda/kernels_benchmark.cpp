// Measures the speed of device kernels. Each speed is reported relative to an upper bound that is measured in the same
// minute. Bandwidth is reported relative to a copy within the device. Products and attention are reported relative to a
// product of 8192³. Kernels whose tensors fit in the L2 cache can exceed 100 % of the copy bandwidth.
//
//   build/tests_run '[gpu][!benchmark]'
//
// Each kernel is enqueued many times between two events, so that the time of the host's calls is hidden. The fastest of five
// such runs counts. On an emulated device, shapes are small and the ratios are meaningless.
#include <fmt/format.h>
#include <array>

#include "src/math/activation.hpp"
#include "src/math/attention.hpp"
#include "src/math/column_sums.hpp"
#include "src/math/cross_entropy.hpp"
#include "src/math/embedding.hpp"
#include "tests/math/cuda/gpu.hpp"

using namespace chorale;

namespace {

class Bench {
 public:
  explicit Bench(Gpu& gpu, bool real) : gpu_(gpu), calls_(real ? 20 : 1), rows_(real ? 5 : 1) {}

  template <class Work>
  double seconds(Work&& work) const {
    work();  // warm-up
    double best = 1e9;
    for (int row = 0; row < rows_; ++row) {
      const auto begun = gpu_.kernels().mark(gpu_.queue());
      for (int call = 0; call < calls_; ++call) work();
      const auto ended = gpu_.kernels().mark(gpu_.queue());
      gpu_.kernels().wait(gpu_.queue());
      best = std::min(best, gpu_.kernels().seconds_between(begun.get(), ended.get()) / calls_);
    }
    return best;
  }
  // `amount` is a number of bytes or operations. A rate of `of` bytes or operations per second counts as 100 %.
  template <class Work>
  double print(const std::string& what, double amount, double of, const char* unit, Work&& work) const {
    const double took = seconds(work), rate = amount / took;
    fmt::print("{:<28} {:10.1f} us {:9.1f} {} {:6.0f} %\n", what, took * 1e6, rate * 1e-9, unit,
               100 * rate / (of > 0 ? of : rate));
    return rate;
  }

 private:
  Gpu& gpu_;
  int calls_, rows_;
};

}  // namespace

TEST_CASE("device: memory-bound kernels relative to a copy", "[gpu][!benchmark]") {
  Gpu gpu;
  if (!gpu) return;
  const bool real = !gpu.emulated();
  const Bench bench(gpu, real);
  const Queue queue = gpu.queue();
  const std::int64_t rows = real ? 16384 : 32, width = real ? 768 : 64, words = real ? 50304 : 128;
  const DType wide = DType::f32, narrow = DType::bf16;
  Desk desk;
  SumSite site;
  const auto on_device = [&](Shape shape, DType dtype) { return gpu.sent(desk.random(std::move(shape), dtype)); };

  const std::int64_t large = real ? std::int64_t{1} << 28 : 1 << 12;  // larger than the L2 cache
  const Tensor from = gpu.empty({large}, DType::f32), to = gpu.empty({large}, DType::f32);
  const double copy = bench.print("copy within the device", 2.0 * static_cast<double>(from.bytes()), 0, "GB/s",
                                  [&] { queue.device->copy(to.slice().data, from.slice().data, from.bytes(), queue); });
  const auto moves = [&](const char* what, std::int64_t bytes, auto&& work) {
    bench.print(what, static_cast<double>(bytes), copy, "GB/s", work);
  };

  const Tensor x = on_device({rows, width}, narrow), y = on_device({rows, width}, narrow),
               dy = on_device({rows, width}, narrow);
  const Tensor x4 = on_device({rows, 4 * width}, narrow), y4 = on_device({rows, 4 * width}, narrow),
               dy4 = on_device({rows, 4 * width}, narrow);
  const Tensor gain = on_device({width}, narrow), shift = on_device({width}, narrow), stats = on_device({rows, 2}, wide);
  const Tensor dgain = on_device({width}, wide), dshift = on_device({width}, wide), db = on_device({4 * width}, wide);
  moves("gelu_forward", 2 * x4.bytes(), [&] { gelu_forward(x4, y4, queue); });
  moves("gelu_backward", 3 * x4.bytes(), [&] { gelu_backward(dy4, x4, y4, queue); });
  moves("norm_forward", 2 * x.bytes(), [&] { norm_forward(NormKind::layer, x, gain, &shift, 1e-5, y, stats, queue); });
  moves("norm_backward", 4 * x.bytes(), [&] { norm_backward(NormKind::layer, dy, x, gain, stats, &y, y, queue); });
  moves("add_norm_gradients", 2 * x.bytes(), [&] { add_norm_gradients(dy, x, stats, dgain, &dshift, queue); });
  moves("add_columns", x4.bytes(), [&] { add_columns(dy4, db, queue); });
  const Dropout drop{0.1, {.seed = 5}, {.sequence = rows, .tokens = rows}};
  moves("dropout", 2 * x.bytes(), [&] { dropout(x, drop, y, queue); });
  moves("add_residual", 3 * x.bytes(), [&] { add_residual(x, nullptr, {}, dy, y, queue); });

  const Tensor ids = desk.empty({rows}, DType::i32), table = gpu.empty({words, width}, narrow),
               slopes = gpu.empty({words, width}, wide);
  for (std::int64_t row = 0; row < rows; ++row) put(ids, row, row * 7919 % words);
  const Tensor there = gpu.sent(ids);
  moves("gather_rows", 2 * x.bytes(), [&] { gather_rows(there, table, 0, y, queue); });
  moves("add_rows", x.bytes() + 2 * rows * width * 4, [&] { add_rows(there, 0, x, slopes, queue); });

  const Tensor logits = gpu.empty({rows, words}, narrow), maxima = on_device({rows}, wide), sums = on_device({rows}, wide);
  clear(logits);
  moves("row_maxima", logits.bytes(), [&] { row_maxima(logits, maxima, queue); });
  moves("sum_exponentials", logits.bytes(), [&] { gpu.numerics().sum_exponentials(logits, maxima, sums, site, queue); });
  moves("cross_entropy_gradient", 2 * logits.bytes(),
        [&] { cross_entropy_gradient(logits, maxima, sums, 1, there, 0, 1, queue); });

  const Tensor weights = gpu.empty({large / 8}, wide), moment = gpu.empty({large / 8}, wide),
               moment2 = gpu.empty({large / 8}, wide);
  const Tensor gradient = gpu.empty({large / 8}, wide), stored = gpu.empty({large / 8}, narrow),
               sum = on_device({1}, DType::f64);
  for (const Tensor& state : {weights, moment, moment2, gradient}) clear(state);
  UpdateRange range{.weights = weights.slice(), .moments = {moment.slice(), moment2.slice()}, .gradient = gradient.slice()};
  const AdamStep step{1e-3, 0.9, 0.95, 1e-8, 0.1, 1, 1};
  moves("adamw", 28 * weights.count(), [&] { adamw(step, std::array{range}, queue); });
  range.value = stored.slice();
  moves("adamw and rounding", 30 * weights.count(), [&] { adamw(step, std::array{range}, queue); });
  range.value = {};
  range.weights = stored.slice();
  moves("adamw without masters", 24 * weights.count(), [&] { adamw(step, std::array{range}, queue); });
  moves("cast f32 to bf16", 6 * weights.count(), [&] { cast(weights.slice(), stored.slice(), queue); });
  SquareSum squares{.there = sum.slice().data};
  moves("add_squares", gradient.bytes(), [&] {
    gpu.numerics().add_squares(std::array{ScaledSlice{gradient.slice(), 1}}, squares, queue);
  });
}

TEST_CASE("device: products and attention relative to the peak", "[gpu][!benchmark]") {
  Gpu gpu;
  if (!gpu) return;
  const bool real = !gpu.emulated();
  const Bench bench(gpu, real);
  const Queue queue = gpu.queue();
  Desk desk;
  SumSite site;
  const DType type = DType::bf16;
  const auto on_device = [&](Shape shape, DType dtype) { return gpu.sent(desk.random(std::move(shape), dtype)); };

  // NVIDIA specifies 989 TFLOP/s of bf16 for an H200. This benchmark takes the rate of a large product as the peak.
  const std::int64_t side = real ? 8192 : 32;
  const Tensor square = on_device({side, side}, type), result = on_device({side, side}, type);
  const double peak = bench.print("product of 8192³", 2.0 * static_cast<double>(side * side * side), 0, "GFLOP/s",
                                  [&] { gpu.numerics().product(square, square, false, nullptr, result, queue); });
  const std::int64_t tokens = real ? 16384 : 32;
  const auto product = [&](const char* what, std::int64_t k, std::int64_t n) {
    if (!real) k = n = 16;
    const Tensor x = on_device({tokens, k}, type), w = on_device({k, n}, type), bias = on_device({n}, type),
                 y = gpu.empty({tokens, n}, type);
    const Tensor dw = gpu.empty({k, n}, DType::f32);
    const double operations = 2.0 * static_cast<double>(tokens * k * n);
    bench.print(what, operations, peak, "GFLOP/s", [&] { gpu.numerics().product(x, w, false, &bias, y, queue); });
    bench.print("  its weights' gradient", operations, peak, "GFLOP/s",
                [&] { gpu.numerics().add_outer(x, y, 1, dw, site, queue); });
  };
  product("qkv 768 to 2304", 768, 2304);
  product("up 768 to 3072", 768, 3072);
  product("down 3072 to 768", 3072, 768);
  product("head 768 to 50304", 768, 50304);

  const std::int64_t sequence = real ? 1024 : 64, samples = real ? 16 : 1;
  for (const auto& [heads, width] : {std::pair{12, 64}, std::pair{6, 128}}) {
    const AttentionShape shape{.groups = real ? heads : 1, .queries = 1, .width = width};
    const Dropout none{0, {}, {.sequence = sequence, .tokens = sequence}};
    const std::int64_t rows = samples * sequence;
    const Tensor qkv = on_device({rows, shape.columns()}, type), dqkv = gpu.empty(qkv.shape(), type);
    const Tensor out = gpu.empty({rows, shape.heads() * width}, type), dout = on_device(out.shape(), type);
    const Tensor lse = gpu.empty({rows, shape.heads()}, DType::f32);
    const AttentionInput in = whole_sequences(qkv, shape, none);
    // Only operations below the diagonal count, which are half of the full products. By convention, the gradient counts as
    // 5/2 times the forward pass.
    const double operations = 2.0 * static_cast<double>(rows * sequence * shape.heads() * width);
    bench.print(fmt::format("attention {}×{}", heads, width), operations, peak, "GFLOP/s",
                [&] { attention_forward(in, out, lse, queue); });
    bench.print("  its gradient", 2.5 * operations, peak, "GFLOP/s",
                [&] { attention_backward(in, dout, out, lse, dqkv, in.keys.in(dqkv), queue); });
  }
}
