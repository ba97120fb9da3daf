// Reads and writes of a file that run in the background, many at once. There are two queues. With io_uring
// (uring_queue.cpp), the kernel does the work while the program computes. The plain queue is for kernels or containers that
// refuse io_uring; it does the work before start() returns.
//
//   start(a) start(b) start(c) ── the program computes ── wait_for_one(): b       in any order
#pragma once
#include <cstdint>
#include <memory>

namespace chorale {

struct IoRequest {
  enum class Kind : std::uint8_t { read, write } kind = Kind::read;
  int file = -1;
  std::int64_t offset = 0, bytes = 0;
  void* data = nullptr;
  std::int64_t result = 0;  // bytes transferred, perhaps fewer than requested; negative: −errno
};

class IoQueue {
 public:
  virtual ~IoQueue() = default;
  virtual const char* name() const = 0;
  virtual int depth() const = 0;  // the most requests that may be in flight at once
  // The request must stay at its address until the queue returns it. If start() throws, the queue will not return it.
  virtual void start(IoRequest& request) = 0;
  virtual IoRequest* one_that_ended() = 0;  // null: none has ended
  virtual IoRequest& wait_for_one() = 0;    // at least one request must be in flight
  // Pins memory for many requests, so that the kernel need not look up its pages for each of them. Returns false if the
  // kernel refuses, for example beyond `ulimit -l`; requests then work unpinned. Before Linux 6.4, released pages may count
  // toward that limit for another second. No request may still use the memory when it is released.
  virtual bool pin(void* /*data*/, std::int64_t /*bytes*/) { return false; }
  virtual void release(void* /*data*/) noexcept {}
};

std::unique_ptr<IoQueue> uring_queue();  // null: this kernel or container refuses io_uring
std::unique_ptr<IoQueue> plain_queue();

}  // namespace chorale
