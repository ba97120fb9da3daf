#include "parallel/prediction/kernel_time.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "src/base/error.hpp"
#include "src/base/text.hpp"

namespace chorale {
namespace {

// The tile sizes that libraries use. Each tile reaches a fraction of the speed of the largest tile. A tile of r × c loads r
// + c values for r·c products. Per product, a 128×128 tile loads a third more than a 256×128 tile, and a 64×64 tile loads
// 2.7 times as much. Part of the additional loads overlaps the products. The fractions were chosen by hand to fit the small
// products in published tables.
struct Tile {
  int rows, columns;
  double speed;
};
constexpr Tile tiles[] = {{256, 128, 1.0}, {128, 256, 1.0}, {128, 128, 0.93}, {128, 64, 0.80}, {64, 64, 0.60}};

// Returns the fraction of full speed that a product with these sizes reaches. Loads of 16 bytes require that each size is a
// multiple of 8 (with 16-bit elements). The fraction 0.35 fits the head of vTrain's models, whose vocabulary size is odd.
// The fractions 0.75 and 0.5 were chosen by hand between 0.35 and 1.
double alignment(std::int64_t m, std::int64_t n, std::int64_t k) {
  const std::int64_t sizes = m | n | k, least = sizes & -sizes;
  return least >= 8 ? 1 : least == 4 ? 0.75 : least == 2 ? 0.5 : 0.35;
}

constexpr int logit_kernels = 9;  // number of additional kernels if the loss is not fused; Chorale has three

double up(double quotient) { return std::ceil(quotient); }
double real(std::int64_t n) { return static_cast<double>(n); }

}  // namespace

double KernelTime::total() const { return std::accumulate(seconds.begin(), seconds.end(), 0.0); }

KernelTime& KernelTime::operator+=(const KernelTime& other) {
  for (std::size_t kind = 0; kind < kinds_of_spending; ++kind) seconds[kind] += other.seconds[kind];
  launches += other.launches;
  return *this;
}

const ProductRate& rate_of(const Accelerator& accelerator, const std::string& type) {
  std::vector<std::string> known;
  for (const ProductRate& rate : accelerator.products) {
    if (rate.type == type) return rate;
    known.push_back(rate.type);
  }
  usage_error(fmt::format("the machine file does not say how fast {} multiplies {}", accelerator.name, type),
              "it has " + join(known, ", "),
              "add [[accelerator.product]] (docs/machine_file.md), or choose another --dtype");
}

KernelTimes::KernelTimes(const System& system, const std::string& products, const std::string& others, bool dropout)
    : system_(system),
      rate_(rate_of(system.accelerator, products)),
      other_rate_(rate_of(system.accelerator, others)),
      dropout_(dropout) {}

KernelTime KernelTimes::of(const KernelWork& kernel) const {
  KernelTime time;
  switch (kernel.work) {
    case Work::product: product(time, kernel); break;
    case Work::attention: attention(time, kernel); break;
    case Work::elements: pass(time, Spent::elements, kernel.bytes); break;
    case Work::update: pass(time, Spent::update, kernel.bytes); break;
  }
  return time;
}

void KernelTimes::pass(KernelTime& time, Spent kind, double bytes, int launches) const {
  const Accelerator& a = system_.accelerator;
  time.seconds[static_cast<std::size_t>(kind)] += bytes / (a.bandwidth * a.streamed) + launches * a.start;
  time.launches += launches;
}

void KernelTimes::product(KernelTime& time, Spent kind, std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch,
                          double bytes, const ProductRate& rate) const {
  const Accelerator& a = system_.accelerator;
  double best = std::numeric_limits<double>::infinity();
  for (const Tile& tile : tiles)
    for (const int cuts : {1, 2, 4}) {
      if (cuts > 1 && k < 1024 * cuts) break;
      const double all = up(real(m) / tile.rows) * up(real(n) / tile.columns) * real(batch) * cuts;
      // If k is split, the partial sums are added at the end. The addition takes about half as long as the start-up of a
      // tile.
      const double steps = real(k) / cuts + rate.ramp * (cuts > 1 ? 1.5 : 1);
      const double unit = rate.flops / a.units * rate.reached * tile.speed;
      best = std::min(best, up(all / a.units) * 2 * tile.rows * tile.columns * steps / unit);
    }
  best = std::max(best / alignment(m, n, k), bytes / (a.bandwidth * a.streamed));
  time.seconds[static_cast<std::size_t>(kind)] += best + a.start;
  ++time.launches;
}

void KernelTimes::product(KernelTime& time, const KernelWork& kernel) const {
  const auto [m, n, k] = std::array{kernel.m, kernel.n, kernel.k};
  if (m == 0 || n == 0 || k == 0) return;
  const bool head = kernel.head != OfHead::no;
  const bool sums_apart = kernel.gradient && !system_.software.fused_sums;
  double bytes = sums_apart ? kernel.bytes - 6 * real(m) * real(n) : kernel.bytes;
  if (!head && rate_.type == "fp8") {
    // Operands have 8 bits. An additional pass over memory converts the operands from 16 bits. The scales of the operands
    // are assumed to cost nothing.
    bytes -= real(m) * real(k) + real(k) * real(n);
    const bool forward = !kernel.gradient;
    pass(time, Spent::elements, 4 * (forward ? real(m) * real(k) : real(k) * real(n)));
  }
  product(time, Spent::products, m, n, k, 1, bytes, head ? other_rate_ : rate_);
  if (sums_apart) pass(time, Spent::elements, 6 * real(m) * real(n));
  if (kernel.head == OfHead::logits && system_.software.logit_bytes > 0)
    pass(time, Spent::elements, system_.software.logit_bytes * real(m) * real(n), logit_kernels);
}

void KernelTimes::attention(KernelTime& time, const KernelWork& kernel) const {
  if (!system_.software.fused_attention) return unfused_attention(time, kernel);
  const Accelerator& a = system_.accelerator;
  // Backward kernels are assumed to reach a smaller fraction of the peak, because five products share the registers.
  const double share = other_rate_.attention * (kernel.gradient ? 0.85 : 1);
  const double flops = kernel.amount / (other_rate_.flops * share), bytes = kernel.bytes / (a.bandwidth * a.streamed);
  time.seconds[static_cast<std::size_t>(Spent::attention)] += std::max(flops, bytes) + a.start;
  ++time.launches;
}

// Without fused attention, separate 16-bit kernels compute the scores, mask and normalize them, apply dropout, and multiply
// the scores by the values. These kernels do not skip the masked half of the scores. Softmax reads and writes 2 + 2 bytes
// per score. Dropout reads and writes 2 + 2 bytes, and a mask of 1 byte. The gradient of softmax reads and writes 2 + 2 + 2
// bytes per score. Without a fused softmax, eight kernels scale and mask the scores and convert them to f32 and back. These
// kernels read and write 30 bytes per score.
void KernelTimes::unfused_attention(KernelTime& time, const KernelWork& kernel) const {
  const Software& software = system_.software;
  const double scores = real(kernel.batch) * real(kernel.m) * real(kernel.n);
  const double matrix = 2 * real(kernel.batch) * real(kernel.k) * (real(kernel.m) + real(kernel.n));
  const double bytes = 2 * scores + matrix;
  const bool one_softmax = software.fused_softmax_heads == 0 || kernel.batch % software.fused_softmax_heads == 0;
  const auto products = [&](int number, bool makes_scores) {
    for (int i = 0; i < number; ++i)
      product(time, Spent::attention, kernel.m, makes_scores ? kernel.n : kernel.k, makes_scores ? kernel.k : kernel.n,
              kernel.batch, bytes, other_rate_);
  };
  const auto softmax = [&](double fused) {
    pass(time, Spent::attention, (one_softmax ? fused : 30) * scores, one_softmax ? 1 : 8);
  };
  const auto forward = [&] {
    products(1, true);
    softmax(4);
    if (dropout_) pass(time, Spent::attention, 5 * scores);
    products(1, false);
  };
  if (!kernel.gradient) {
    forward();
    pass(time, Spent::attention, matrix);
    return;
  }
  if (software.recomputes_attention) forward();
  products(1, true);
  products(3, false);
  softmax(6);
  if (dropout_) pass(time, Spent::attention, 5 * scores);
  pass(time, Spent::attention, 4 * matrix, 4);
}

}  // namespace chorale
