// The products of src/math/cuda/blas.cuh as plain loops, without cuBLASLt. Each element is one sequential sum over k.
#include "src/math/cuda/blas.cuh"

#include "src/math/kernel.hpp"
#include "tests/cuda/emulation/far.hpp"
#include "tests/cuda/emulation/streams.hpp"

namespace chorale::cuda {

struct Blas::Library {};
Blas::Blas() = default;
Blas::~Blas() = default;

std::int64_t Blas::workspace_bytes() { return 4096; }  // unused memory; tests of the memory ledger need a nonzero size

void Blas::run(const Matmul& p, const void* x, const void* w, const void* bias, void* y, const Queue&) {
  emulation::advance();
  const emulation::Open open;
  visit_floating(p.input, [&]<class T>(Type<T>) {
    visit_floating(p.output, [&]<class Y>(Type<Y>) {
      using Sum = Statistic<T>;
      const auto *xs = static_cast<const T*>(x), *ws = static_cast<const T*>(w), *added = static_cast<const T*>(bias);
      for (std::int64_t i = 0; i < p.m; ++i)
        for (std::int64_t j = 0; j < p.n; ++j) {
          Sum sum = p.bias ? static_cast<Sum>(added[j]) : 0;
          for (std::int64_t k = 0; k < p.k; ++k)
            sum += static_cast<Sum>(xs[p.x_transposed ? k * p.m + i : i * p.k + k]) *
                   static_cast<Sum>(ws[p.w_transposed ? j * p.k + k : k * p.n + j]);
          Y& result = static_cast<Y*>(y)[i * p.n + j];
          result = static_cast<Y>(p.accumulate ? static_cast<Sum>(result) + sum : sum);
        }
    });
  });
}

}  // namespace chorale::cuda
