// Tests that the predicted time of a kernel follows from the kernel's shape, as kernel_time.hpp specifies.
#include "parallel/prediction/kernel_time.hpp"

#include "src/base/error.hpp"
#include "tests/catch.hpp"
#include "tests/parallel/prediction/small_system.hpp"

namespace chorale::test {
namespace {

KernelWork product_of(std::int64_t m, std::int64_t n, std::int64_t k) {
  const auto size = [](std::int64_t a, std::int64_t b) { return 2.0 * static_cast<double>(a * b); };
  return {.work = Work::product,
          .amount = size(m, n) * static_cast<double>(k),
          .bytes = size(m, k) + size(k, n) + size(m, n),
          .m = m,
          .n = n,
          .k = k};
}

double seconds(const System& system, const KernelWork& kernel, const std::string& type = "bf16") {
  return KernelTimes(system, type, "bf16", false).of(kernel).total();
}

constexpr double approximately = 1e-9;

}  // namespace

TEST_CASE("a product takes whole waves of tiles") {
  const System system = small_system();
  // The accelerator has 10 units, so ten tiles of 256×128 are one wave, and eleven are two waves. A tile of k = 4096 takes
  // 2·256·128·4096 / 10 TFLOP/s.
  const double wave = 2.0 * 256 * 128 * 4096 / 1e13;
  CHECK(seconds(system, product_of(2560, 128, 4096)) == Approx(wave).epsilon(approximately));
  const double more = seconds(system, product_of(2816, 128, 4096));
  CHECK(more > wave * 1.05);  // smaller tiles, or a split of k among units, are faster than a second wave
  CHECK(more < wave * 2);
  CHECK(seconds(system, product_of(5120, 1280, 4096)) == Approx(20 * wave).epsilon(approximately));
}

TEST_CASE("a tile's ramp, a smaller share of the peak and odd sizes cost time") {
  System system = small_system();
  const KernelWork large = product_of(5120, 1280, 4096), odd = product_of(5120, 1281, 4096);
  const double before = seconds(system, large);
  system.accelerator.products[0].reached = 0.5;
  CHECK(seconds(system, large) == Approx(2 * before).epsilon(approximately));
  system.accelerator.products[0].ramp = 4096;
  CHECK(seconds(system, large) == Approx(4 * before).epsilon(approximately));
  system = small_system();
  CHECK(seconds(system, odd) > 2.5 * before);  // loads of 16 bytes need sizes that are multiples of 8 elements
}

TEST_CASE("no kernel is faster than its bytes, and each takes its time to start") {
  System system = small_system();
  const KernelWork thin = product_of(8, 1 << 20, 8);
  CHECK(seconds(system, thin) == Approx(thin.bytes / 1e12).epsilon(1e-3));
  const KernelWork pass{.work = Work::elements, .amount = 1e9, .bytes = 1e9};
  CHECK(seconds(system, pass) == Approx(1e-3).epsilon(approximately));
  system.accelerator.streamed = 0.5;
  system.accelerator.start = 1e-3;
  CHECK(seconds(system, pass) == Approx(3e-3).epsilon(approximately));
}

TEST_CASE("products in 8 bits are faster, but for those of the head, and need a pass that makes their operands") {
  System system = small_system();
  const KernelWork large = product_of(5120, 1280, 4096);
  const double bf16 = seconds(system, large), pass = 4.0 * 5120 * 4096 / 1e12;
  CHECK(seconds(system, large, "fp8") == Approx(bf16 / 2 + pass).epsilon(approximately));
  KernelWork logits = large;
  logits.head = OfHead::logits;
  CHECK(seconds(system, logits, "fp8") == Approx(bf16).epsilon(approximately));
  system.software.logit_bytes = 10;
  CHECK(seconds(system, logits) == Approx(bf16 + 10.0 * 5120 * 1280 / 1e12).epsilon(approximately));
}

TEST_CASE("attention in parts reads and writes all scores, and computes those that are masked") {
  System system = small_system();
  const KernelWork attention{.work = Work::attention,
                             .amount = 4.0 * (1024 * 1024 / 2) * 64 * 16,
                             .bytes = 0,
                             .m = 1024,
                             .n = 1024,
                             .k = 64,
                             .batch = 16};
  const double fused = seconds(system, attention);
  CHECK(fused == Approx(attention.amount / 1e14).epsilon(approximately));
  system.software.fused_attention = false;
  const double scores = 16.0 * 1024 * 1024;
  const double apart = seconds(system, attention);
  CHECK(apart > 2 * fused + 4 * scores / 1e12);
  system.software.fused_softmax_heads = 3;  // 16 heads are not a multiple of 3, so masking, softmax and scaling are separate
                                            // kernels
  CHECK(seconds(system, attention) == Approx(apart + 26 * scores / 1e12).epsilon(approximately));
  KernelWork backward = attention;
  backward.gradient = true;
  const double once = seconds(system, backward);
  system.software.recomputes_attention = true;
  CHECK(seconds(system, backward) > 1.2 * once);
}

TEST_CASE("a number format that the accelerator does not have is refused") {
  const System system = small_system();
  CHECK_THROWS_AS(KernelTimes(system, "f16", "bf16", false), Error);
}

}  // namespace chorale::test
