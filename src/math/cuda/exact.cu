// Exact numerics reads two kinds of values back from a device: the largest addend of each site, and ‖g‖². ‖g‖² is summed in
// four limbs of 32 bits, so that threads need not propagate carries. The host combines the limbs, and the result saturates
// at the same limit as a sum on the host (src/math/exact/squares.hpp).
//
// The kernel is memory-bound: 8 bytes per element of an i64 gradient, 4 bytes per element of an f32 gradient.
#include "src/math/cuda/exact.cuh"

#include <algorithm>

#include "src/math/cuda/launch.cuh"
#include "src/math/exact/squares.hpp"

namespace chorale {
namespace cuda {

std::uint32_t* Watermarks::of(SumSite& site, const Queue& queue) {
  require(!raised_ || queue.stream == queue_.stream, "{}: all exact sums of a device must use one stream", site.name);
  queue_ = queue;
  raised_ = true;
  if (!words_) {
    words_.emplace(most_sites, queue);
    check(cudaMemsetAsync(words_->get(), 0, most_sites * sizeof(std::uint32_t), stream_of(queue)));
  }
  if (site.word < 0) {
    require(std::ssize(seen_) < most_sites, "no room for the site {}: a device holds at most {} sites", site.name,
            most_sites);
    site.word = static_cast<std::int32_t>(seen_.size());
    seen_.push_back(0);
  }
  return words_->get() + site.word;
}

void Watermarks::collect(SumSite& site) {
  if (site.word < 0) return;
  if (raised_) fetch();
  site.highest = std::max(site.highest, std::exchange(seen_[static_cast<std::size_t>(site.word)], 0));
}

void Watermarks::fetch() {
  const std::size_t bytes = seen_.size() * sizeof(std::uint32_t);
  std::vector<std::uint32_t> words(seen_.size());
  check(cudaMemcpyAsync(words.data(), words_->get(), bytes, cudaMemcpyDefault, stream_of(queue_)));
  check(cudaMemsetAsync(words_->get(), 0, bytes, stream_of(queue_)));
  check(cudaStreamSynchronize(stream_of(queue_)));
  for (std::size_t i = 0; i < words.size(); ++i) seen_[i] = std::max(seen_[i], words[i]);
  raised_ = false;
}

namespace {

constexpr int threads = 256, limbs = 4;

template <class T>
__global__ void sum_squares(const T* gradient, std::int64_t count, double scale, std::int64_t* sums) {
  std::uint64_t of_thread[limbs] = {};
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) {
    const auto whole = static_cast<unsigned __int128>(exact::whole_element(gradient[i], scale));
    const unsigned __int128 square = whole * whole;
#pragma unroll
    for (int l = 0; l < limbs; ++l) of_thread[l] += static_cast<std::uint32_t>(square >> (32 * l));
  }
  for (int l = 0; l < limbs; ++l) {
    const std::uint64_t sum = over_block(of_thread[l], Plus{});
    if (threadIdx.x == 0) add_whole(sums + l, sum);
  }
}

// Combines the limbs. For up to 2^31 elements, a limb is below 2^63.
__int128 put_together(std::span<const std::uint64_t> words) {
  unsigned __int128 sum = 0, carry = 0;
  for (std::size_t l = 0; l < words.size(); ++l) {
    carry += words[l];
    sum += static_cast<unsigned __int128>(static_cast<std::uint32_t>(carry)) << (32 * l);
    carry >>= 32;
  }
  const auto limit = static_cast<unsigned __int128>(exact::greatest_square_sum);
  return static_cast<__int128>(carry > 0 ? limit : std::min(sum, limit));
}

}  // namespace

__int128 ExactKernels::squares(std::span<const ScaledSlice> gradients, const Queue& queue) {
  if (gradients.empty()) return 0;  // CUDA refuses allocations of 0 bytes
  std::vector<std::uint64_t> words(limbs * gradients.size());
  const std::size_t bytes = words.size() * sizeof(std::uint64_t);
  const Scratch<std::int64_t> sums(std::ssize(words), queue);
  check(cudaMemsetAsync(sums.get(), 0, bytes, stream_of(queue)));
  for (std::size_t g = 0; g < gradients.size(); ++g) {
    const auto& [gradient, scale] = gradients[g];
    std::int64_t* const here = sums.get() + limbs * g;
    const Grid grid{std::clamp<std::int64_t>(quotient_up(gradient.count, 8 * threads), 1, 1024), threads};
    if (gradient.dtype == DType::i64)
      launch(sum_squares<std::int64_t>, grid, queue, data<std::int64_t>(gradient), gradient.count, scale, here);
    else
      launch(sum_squares<float>, grid, queue, data<float>(gradient), gradient.count, scale, here);
  }
  check(cudaMemcpyAsync(words.data(), sums.get(), bytes, cudaMemcpyDefault, stream_of(queue)));
  check(cudaStreamSynchronize(stream_of(queue)));

  __int128 sum = 0;
  for (std::size_t g = 0; g < gradients.size(); ++g)
    sum = std::min(sum + put_together({words.data() + limbs * g, limbs}), exact::greatest_square_sum);
  return sum;
}

}  // namespace cuda

extern "C" Numerics* chorale_cuda_exact_numerics() {
  exact::require_plain_arithmetic();  // checks the arithmetic of the host, because the host processes the sums
  return exact::numerics_on(std::make_unique<cuda::ExactKernels>()).release();
}

}  // namespace chorale
