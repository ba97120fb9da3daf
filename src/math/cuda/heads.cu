// Copies some heads of queries, keys and values on a device. A thread copies 16 bytes, or 2 bytes if a head's width or an
// address is not a multiple of 16 bytes.
#include "src/math/heads.hpp"

#include "src/math/cuda/kernels.cuh"
#include "src/math/cuda/launch.cuh"
#include "src/math/cuda/pack.cuh"

namespace chorale::cuda {
namespace {

struct alignas(16) Sixteen {
  std::uint64_t halves[2];
};

// A Piece is a vector of 16 or 2 bytes. Every unit has `whole` vectors, of which `chosen` vectors, starting at vector
// `first`, are copied.
template <class Piece>
__global__ void copy_pieces(Piece* x, std::int64_t whole, std::int64_t first, std::int64_t chosen, std::int64_t count,
                            Piece* rows, bool back) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= count) return;
  Piece& there = x[i / chosen * whole + first + i % chosen];
  if (back)
    there = rows[i];
  else
    rows[i] = there;
}

}  // namespace

void copy_heads(const Tensor& x, const SomeHeads& heads, const Tensor& rows, bool back, const Queue& queue) {
  constexpr int threads = 256;
  const std::int64_t head = heads.width * size_of(x.dtype());
  const auto run = [&]<class Piece>(Type<Piece>) {
    const std::int64_t pieces = head / static_cast<std::int64_t>(sizeof(Piece)), count = rows.dim(0) * pieces;
    launch(copy_pieces<Piece>, {quotient_up(count, threads), threads}, queue, data<Piece>(x), heads.heads * pieces,
           heads.first * pieces, heads.count * pieces, count, data<Piece>(rows), back);
  };
  if (head % 16 == 0 && aligned(data<std::byte>(x), data<std::byte>(rows)))
    run(Type<Pack<std::uint64_t, 2>>{});
  else
    run(Type<std::uint16_t>{});
}

}  // namespace chorale::cuda
