// Exact sums of single values. A value is an exponential, a loss, or one token's contribution to the gradient of a bias, a
// norm or a table row. Each value is rounded separately, so the split of tokens into batches, micro-batches and ranks does
// not matter.
//
// Threads split the columns (of gradients) or the rows (of exponentials), so no two threads add to the same sum. The loops
// are memory-bound and read 4 bytes per element. The sums of a few thousand columns stay in the L1 cache.
#include "src/math/exact/fixed_point.hpp"
#include "src/math/exact/host_kernels.hpp"
#include "src/math/vector_math.hpp"

namespace chorale::exact {

void HostKernels::add_columns(const Tensor& dy, const Tensor& db, SumSite& site, const Queue& queue) {
  const std::int64_t rows = dy.dim(0), width = dy.dim(1);
  const float* const from = dy.values<float>().data();
  std::int64_t* const sums = db.values<std::int64_t>().data();
  rounded_for(queue, width, site, [&](std::int64_t first, std::int64_t last, SiteRounding& rounding) {
    for (std::int64_t row = 0; row < rows; ++row) {
      rounding.add_numbers(sums + first, last - first, from + row * width + first);
    }
  });
}

void HostKernels::add_norm_gradients(const Tensor& dy, const Tensor& x, const Tensor& stats, const Tensor& dgain,
                                     const Tensor* dshift, SumSite& site, const Queue& queue) {
  const std::int64_t rows = dy.dim(0), width = dy.dim(1);
  const float *const gradient = dy.values<float>().data(), *const input = x.values<float>().data(),
                     *const statistics = stats.values<float>().data();
  std::int64_t* const gains = dgain.values<std::int64_t>().data();
  std::int64_t* const shifts = dshift ? dshift->values<std::int64_t>().data() : nullptr;
  rounded_for(queue, width, site, [&](std::int64_t first, std::int64_t last, SiteRounding& rounding) {
    for (std::int64_t row = 0; row < rows; ++row) {
      const float *g = gradient + row * width + first, *v = input + row * width + first;
      const float mean = statistics[2 * row], rstd = statistics[2 * row + 1];
      rounding.add(gains + first, last - first, [=](std::int64_t j) { return g[j] * ((v[j] - mean) * rstd); });
      if (shifts) rounding.add_numbers(shifts + first, last - first, g);
    }
  });
}

void HostKernels::add_rows(const Tensor& ids, std::int64_t first_id, const Tensor& dy, const Tensor& table, SumSite& site,
                           const Queue& queue) {
  const std::int64_t rows = dy.dim(0), width = dy.dim(1), held = table.dim(0);
  const std::int32_t* const id = ids.values<std::int32_t>().data();
  const float* const from = dy.values<float>().data();
  std::int64_t* const sums = table.values<std::int64_t>().data();
  rounded_for(queue, width, site, [&](std::int64_t first, std::int64_t last, SiteRounding& rounding) {
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::int64_t to = id[row] - first_id;
      if (to < 0 || to >= held) continue;
      rounding.add_numbers(sums + to * width + first, last - first, from + row * width + first);
    }
  });
}

void HostKernels::sum_exponentials(const Tensor& logits, const Tensor& maxima, const Tensor& sums, SumSite& site,
                                   const Queue& queue) {
  const std::int64_t rows = logits.dim(0), columns = logits.dim(1);
  const float *const from = logits.values<float>().data(), *const greatest = maxima.values<float>().data();
  std::int64_t* const to = sums.values<std::int64_t>().data();
  rounded_for(queue, rows, site, [&](std::int64_t first, std::int64_t last, SiteRounding& rounding) {
    for (std::int64_t row = first; row < last; ++row) {
      const float* z = from + row * columns;
      const float most = greatest[row];
      to[row] = rounding.sum(columns, [=](std::int64_t j) { return math::exp(z[j] - most); });
    }
  });
}

void HostKernels::add_losses(const Tensor& losses, const Tensor& total, SumSite& site, const Queue&) {
  const float* const from = losses.values<float>().data();
  std::int64_t& sum = total.values<std::int64_t>()[0];
  rounded_for(Queue{}, losses.count(), site, [&](std::int64_t first, std::int64_t last, SiteRounding& rounding) {
    sum = plus(sum, rounding.sum(last - first, [=](std::int64_t i) { return from[first + i]; }));
  });
}

}  // namespace chorale::exact
