// Predicts how long a kernel runs on an accelerator. The input is the shape of the kernel that a plan recorded (KernelWork).
//
//   product   tiles are computed in waves, one tile per multiprocessor; a tile takes k + ramp steps
//
//             ┌──┬──┬──┬──┐ wave 1        waves · 2·tile·(k + ramp) / (flops of a unit · reached)
//             ├──┼──┼──┴──┘ wave 2        at least the bytes / (bandwidth · streamed)
//             └──┴──┘                     the fastest of a few tile sizes, also with k split into 2 or 4
//
//   others    bytes / (bandwidth · streamed)
//
// Other training programs can use different kernels. For example, they can compute attention with several kernels, add
// gradients in a separate kernel, or make more passes over the logits.
#pragma once
#include <array>

#include "src/base/system.hpp"
#include "src/math/queue.hpp"

namespace chorale {

enum class Spent : std::uint8_t { products, attention, elements, update };
inline constexpr std::size_t kinds_of_spending = 4;

struct KernelTime {
  std::array<double, kinds_of_spending> seconds{};
  double launches = 0;
  double total() const;
  KernelTime& operator+=(const KernelTime& other);
};

class KernelTimes {
 public:
  // `products`: the number format of products in blocks. `others`: the number format of attention and the head.
  KernelTimes(const System& system, const std::string& products, const std::string& others, bool dropout);
  KernelTime of(const KernelWork& kernel) const;

 private:
  void product(KernelTime& time, Spent kind, std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch,
               double bytes, const ProductRate& rate) const;
  void pass(KernelTime& time, Spent kind, double bytes, int launches = 1) const;
  void product(KernelTime& time, const KernelWork& kernel) const;
  void attention(KernelTime& time, const KernelWork& kernel) const;
  void unfused_attention(KernelTime& time, const KernelWork& kernel) const;

  const System& system_;
  const ProductRate &rate_, &other_rate_;
  bool dropout_;
};

// Returns the rate of a number format. Throws a usage error if the accelerator has no rate for it.
const ProductRate& rate_of(const Accelerator& accelerator, const std::string& type);

}  // namespace chorale
