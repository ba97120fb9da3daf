// Compares the speed of the products of experts with a single product of the same number of rows. Each expert multiplies its
// rows by its own matrix. Each repetition distributes the rows differently, because in training the routing changes from
// step to step.
//
//   build/tests_run "how fast products of experts are"
//
// The products of experts and the single product are timed alternately. The measured time is the CPU time of this thread,
// which other programs hardly affect.
#include <numeric>

#include <chorale/clock.hpp>
#include "src/base/thread_time.hpp"
#include "src/math/numerics.hpp"
#include "tests/math/kernels.hpp"
#include "tests/median.hpp"
#include "tests/progress.hpp"

using namespace chorale;
using test::median;

namespace {

// Returns row counts whose mean is `mean`. Each count differs from the mean by at most a quarter.
std::vector<std::int64_t> uneven(std::int64_t experts, std::int64_t mean, std::uint64_t repetition) {
  const Random random{.seed = 3, .site = 1};
  std::vector<std::int64_t> rows(static_cast<std::size_t>(experts), mean);
  for (std::size_t e = 0; e + 1 < rows.size(); e += 2) {
    const auto moved = static_cast<std::int64_t>(random.uniform(repetition * 64 + e) * static_cast<double>(mean) / 4);
    rows[e] += moved;
    rows[e + 1] -= moved;
  }
  return rows;
}

// A leaf is a group of rows whose sums are formed together (layers/context.hpp). Divides the rows into four leaves as evenly
// as possible. The single product is also divided into four leaves.
std::vector<std::int64_t> leaves_of(std::int64_t rows) { return {rows / 4, rows / 4, rows / 4, rows - rows / 4 * 3}; }

void print_ratios(Numerics& numerics, DType dtype, std::int64_t experts, std::int64_t mean, std::int64_t width,
                  std::int64_t columns) {
  constexpr int repetitions = 15;
  Desk desk;
  SumSite site{.name = "gradient", .sum = SumOf::weight_gradients, .addends = 64};
  const std::int64_t rows = experts * mean;
  const Tensor x = desk.random({rows, width}, dtype), dy = desk.random({rows, columns}, dtype);
  const Tensor y = desk.empty({rows, columns}, dtype), dx = desk.empty({rows, width}, dtype);
  const Tensor w = desk.random({experts * width, columns}, dtype);
  const Tensor dw = desk.filled({experts * width, columns}, numerics.gradient_type(dtype), 0);
  const auto of = [&](const Tensor& matrices, std::int64_t e) { return matrices.narrow(e * width, width); };

  struct Form {
    const char* name;
    std::function<void(std::int64_t e, std::int64_t first, std::int64_t count, std::span<const std::int64_t> leaves)> run;
  };
  const Form forms[] = {
      {"forward",
       [&](auto e, auto first, auto count, auto) {
         numerics.product(x.narrow(first, count), of(w, e), false, nullptr, y.narrow(first, count), {});
       }},
      {"transposed",
       [&](auto e, auto first, auto count, auto) {
         numerics.product(dy.narrow(first, count), of(w, e), true, nullptr, dx.narrow(first, count), {});
       }},
      {"outer",
       [&](auto e, auto first, auto count, auto leaves) {
         numerics.add_outer_by_leaves(x.narrow(first, count), dy.narrow(first, count), leaves, of(dw, e), site, {});
       }},
  };
  fmt::print("{:<5} {:<4} {:>2} × {:<4}", numerics.name(), name_of(dtype), experts, mean);
  for (const Form& form : forms) {
    for (std::int64_t count = mean * 3 / 4; count <= mean * 5 / 4; ++count)  // prepares every row count that occurs
      form.run(0, 0, count, leaves_of(count));
    std::vector<double> one, grouped;
    for (int repetition = 0; repetition <= repetitions; ++repetition) {
      const std::vector<std::int64_t> counts = uneven(experts, mean, static_cast<std::uint64_t>(repetition));
      const std::vector<std::int64_t> whole(static_cast<std::size_t>(4 * experts), mean / 4);
      double begun = thread_seconds();
      form.run(0, 0, rows, whole);
      const double seconds_of_one = thread_seconds() - begun;
      begun = thread_seconds();
      for (std::int64_t e = 0, first = 0; e < experts; ++e) {
        const std::int64_t count = counts[static_cast<std::size_t>(e)];
        form.run(e, first, count, leaves_of(count));
        first += count;
      }
      const double seconds = thread_seconds() - begun;
      if (repetition > 0) {  // the first repetition is a warm-up
        one.push_back(seconds_of_one);
        grouped.push_back(seconds);
      }
    }
    const double flops = 2e-9 * static_cast<double>(rows * width * columns);
    fmt::print("   {} {:3.0f} of {:3.0f}: {:.2f}", form.name, flops / median(grouped), flops / median(one),
               median(one) / median(grouped));
  }
  fmt::print("\n");
}

}  // namespace

TEST_CASE("how fast products of experts are", "[!benchmark]") {
  const auto fast = fast_numerics(), exact = exact_numerics();
  const SystemClock clock;
  const double begun = clock.seconds(), begun_processor = thread_seconds();
  for (const auto& [width, columns] : {std::pair{384, 1024}, std::pair{512, 2048}}) {
    fmt::print("GFLOP/s of the experts, of one product with as many rows, and their ratio; {} × {}\n", width, columns);
    for (const std::int64_t experts : {8, 32})
      for (const std::int64_t mean : {64, 128, 256}) {
        print_ratios(*fast, DType::f32, experts, mean, width, columns);
        print_ratios(*fast, DType::bf16, experts, mean, width, columns);
        print_ratios(*exact, DType::f32, experts, mean, width, columns);
        test::alive();
      }
  }
  fmt::print("this thread had {:.0f} % of a core\n", 100 * (thread_seconds() - begun_processor) / (clock.seconds() - begun));
}
