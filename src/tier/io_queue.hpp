// Reads and writes of a file that run in the background, many at once. Two queues: io_uring (uring_queue.cpp), where the
// kernel does the work while the program computes; and a plain one, for kernels or containers that refuse io_uring, which
// does the work before start() returns.
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
  std::int64_t result = 0;  // bytes that were transferred, which may be fewer; negative: −errno
};

class IoQueue {
 public:
  virtual ~IoQueue() = default;
  virtual const char* name() const = 0;
  virtual int depth() const = 0;  // the most requests that may have been started and not returned
  // The request must stay where it is until it is returned. If start() throws, it will not be returned.
  virtual void start(IoRequest& request) = 0;
  virtual IoRequest* one_that_ended() = 0;  // null: none has ended
  virtual IoRequest& wait_for_one() = 0;    // there must be one that was started
  // Pins memory for many requests, so that the kernel need not look up its pages for each of them. Returns false if the
  // kernel refuses, for example beyond `ulimit -l`; requests then work unpinned. Before Linux 6.4, released pages may count
  // there for another second. No request may use the memory when it is released.
  virtual bool pin(void* /*data*/, std::int64_t /*bytes*/) { return false; }
  virtual void release(void* /*data*/) noexcept {}
};

std::unique_ptr<IoQueue> uring_queue();  // null: this kernel or container refuses io_uring
std::unique_ptr<IoQueue> plain_queue();

}  // namespace chorale
