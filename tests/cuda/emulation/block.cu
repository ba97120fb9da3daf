// Runs the threads of a block as fibers. A switch between fibers saves the registers that the System V ABI of x86-64
// requires a function to preserve, and swaps stacks. A switch takes a few nanoseconds, while swapcontext makes two system
// calls.
#include "tests/cuda/emulation/block.hpp"

#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

constinit thread_local dim3 threadIdx, blockIdx, blockDim, gridDim;

extern "C" void chorale_emulation_switch(void** from, void* to);
asm(R"(
.text
.type chorale_emulation_switch, @function
chorale_emulation_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size chorale_emulation_switch, .-chorale_emulation_switch
)");

namespace emulation {
namespace {

constexpr std::size_t stack_bytes = 128 << 10;
constexpr unsigned warp = 32, most_threads = 1024;

enum class Waits { no, warp, block, ended };

struct Copy {
  void* to;
  const void* from;
  std::size_t bytes;
};

void copy_now(const Copy& copy) {
  if (copy.from)
    std::memcpy(copy.to, copy.from, copy.bytes);
  else
    std::memset(copy.to, 0, copy.bytes);
}

struct Fiber {
  std::vector<Copy> copies;  // copies that the thread has started and not yet waited for
  void* stack_pointer = nullptr;
  Waits waits = Waits::no;
  bool odd = false;  // the half of the buffer `exchanged` that is used next; slow lanes can still read the other half
};

struct Block {
  std::byte* stacks = nullptr;
  std::vector<Fiber> fibers{most_threads};
  unsigned threads = 0, current = 0;
  // Every second block starts with its last thread. Therefore a missing barrier causes an error in every second block.
  bool backwards = false;
  bool last_first = false;  // every second grid starts with its last block, which reveals dependences between blocks
  std::size_t shared_bytes = 0;
  void* scheduler = nullptr;
  const std::function<void()>* kernel = nullptr;
  alignas(16) std::byte exchanged[2][most_threads][most_exchanged];
  alignas(1024) std::byte shared[most_shared_bytes];
};

// Each host thread that launches kernels has one Block, which is kept until the thread ends.
thread_local std::unique_ptr<Block> owned_block;
constinit thread_local Block* block = nullptr;  // a plain pointer, so that an access needs no initialization check

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "emulated kernel: %s (block %u, thread %u)\n", what, blockIdx.x, threadIdx.x);
  std::abort();
}

// The functions that run at every switch get the block as an argument. In a shared library, each access to a thread-local
// variable costs a call.
void wait_for(Block& here, Waits what) {
  Fiber& fiber = here.fibers[here.current];
  fiber.waits = what;
  chorale_emulation_switch(&fiber.stack_pointer, here.scheduler);
}

void enter() {
  (*block->kernel)();
  wait_for(*block, Waits::ended);
  fail("a thread that had ended was resumed");
}

void start(unsigned thread) {
  Fiber& fiber = block->fibers[thread];
  fiber = {};
  auto* top = reinterpret_cast<void**>(block->stacks + (thread + 1) * stack_bytes);
  *--top = nullptr;  // a null return address for enter(), so that the stack is aligned as after a call
  *--top = reinterpret_cast<void*>(&enter);
  top -= 6;
  std::memset(top, 0, 6 * sizeof(void*));
  fiber.stack_pointer = top;
}

void resume(Block& here, unsigned thread) {
  here.current = thread;
  here.fibers[thread].waits = Waits::no;
  chorale_emulation_switch(&here.scheduler, here.fibers[thread].stack_pointer);
}

// Runs a warp until all its lanes have ended, or until all its lanes wait for the other warps of the block. Returns
// Waits::ended or Waits::block.
Waits run_warp(Block& here, unsigned first) {
  unsigned& index = threadIdx.x;
  for (;;) {
    for (unsigned lane = 0; lane < warp; ++lane) {
      index = first + (here.backwards ? warp - 1 - lane : lane);
      resume(here, index);
    }
    const Waits all = here.fibers[first].waits;
    for (unsigned lane = first; lane < first + warp; ++lane)
      if (here.fibers[lane].waits != all) fail("lanes of a warp wait for different things");
    if (all != Waits::warp) return all;
  }
}

void run_block() {
  std::memset(block->shared, 0xff, block->shared_bytes);
  for (unsigned thread = 0; thread < block->threads; ++thread) start(thread);
  block->backwards = !block->backwards;
  const unsigned from = block->backwards ? block->threads - warp : 0;
  for (Waits all = Waits::block; all != Waits::ended;) {
    all = run_warp(*block, from);
    for (unsigned done = warp; done < block->threads; done += warp)
      if (run_warp(*block, block->backwards ? from - done : done) != all) fail("warps of a block wait for different things");
  }
}

}  // namespace

const void* exchange(const void* mine, std::size_t bytes) {
  Block& here = *block;
  Fiber& fiber = here.fibers[here.current];
  std::byte(*half)[most_exchanged] = here.exchanged[fiber.odd];
  fiber.odd = !fiber.odd;
  std::memcpy(half[here.current], mine, bytes);
  const unsigned first = here.current / warp * warp;
  wait_for(here, Waits::warp);
  return half[first];
}

void require_sixteen(const void* place) {
  if (reinterpret_cast<std::uintptr_t>(place) % 16 != 0) fail("an access of 16 bytes is not aligned to 16");
}

void copy_later(void* to, const void* from, std::size_t bytes) {
  if (block->backwards) return copy_now({to, from, bytes});
  block->fibers[block->current].copies.push_back({to, from, bytes});
}

void wait_for_copies() {
  for (const Copy& copy : std::exchange(block->fibers[block->current].copies, {})) copy_now(copy);
}

std::byte* shared_memory() { return block->shared; }

void run_grid(std::int64_t blocks, unsigned threads, std::size_t shared_bytes, const std::function<void()>& kernel) {
  if (blocks < 1 || blocks > std::numeric_limits<std::int32_t>::max())
    throw std::invalid_argument("a grid must have 1 to 2^31 - 1 blocks; this one has " + std::to_string(blocks) + " blocks");
  if (threads == 0 || threads > most_threads || threads % warp != 0)
    throw std::invalid_argument("a block must have 1 to 32 whole warps of 32 threads; this one has " +
                                std::to_string(threads) + " threads");
  if (shared_bytes > most_shared_bytes)
    throw std::invalid_argument("a block has at most 227 KiB of shared memory; this one asks for " +
                                std::to_string(shared_bytes) + " bytes");
  if (!block) {
    owned_block = std::make_unique<Block>();
    void* stacks = mmap(nullptr, most_threads * stack_bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stacks == MAP_FAILED) throw std::bad_alloc();
    owned_block->stacks = static_cast<std::byte*>(stacks);
    block = owned_block.get();
  }
  block->threads = threads;
  block->shared_bytes = shared_bytes;
  block->kernel = &kernel;
  blockDim = {threads};
  gridDim = {static_cast<unsigned>(blocks)};
  block->last_first = !block->last_first;
  for (unsigned b = 0; b < gridDim.x; ++b) {
    blockIdx = {block->last_first ? gridDim.x - 1 - b : b};
    run_block();
  }
}

}  // namespace emulation

void __syncthreads() { emulation::wait_for(*emulation::block, emulation::Waits::block); }
void __syncwarp() { emulation::wait_for(*emulation::block, emulation::Waits::warp); }
