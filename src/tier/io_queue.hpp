// A queue of file reads and writes. Many requests can be in flight. There are two implementations. With io_uring
// (uring_queue.cpp), the kernel performs the requests while the program computes. The plain queue is for kernels or
// containers that refuse io_uring; it performs each request before start() returns.
//
//   start(a) start(b) start(c) ── the program computes ── wait_for_one(): b       requests complete in any order
#pragma once
#include <cstdint>
#include <memory>

namespace chorale {

struct IoRequest {
  enum class Kind : std::uint8_t { read, write } kind = Kind::read;
  int file = -1;
  std::int64_t offset = 0, bytes = 0;
  void* data = nullptr;
  std::int64_t result = 0;  // number of bytes transferred, which can be smaller than requested, or −errno after a failure
};

class IoQueue {
 public:
  virtual ~IoQueue() = default;
  virtual const char* name() const = 0;
  virtual int depth() const = 0;  // maximum number of requests in flight
  // The request must stay at its address until the queue returns it. If start() throws, the queue does not return the
  // request.
  virtual void start(IoRequest& request) = 0;
  virtual IoRequest* one_that_ended() = 0;  // returns a completed request, or null if there is none
  virtual IoRequest& wait_for_one() = 0;    // waits for a completed request; at least one request must be in flight
  // Pins memory that many requests use, so that the kernel need not look up its pages for each request. Returns false if the
  // kernel refuses, for example because of `ulimit -l`; requests then work with unpinned memory. Before Linux 6.4, released
  // pages can count toward that limit for another second. Memory must not be released while a request uses it.
  virtual bool pin(void* /*data*/, std::int64_t /*bytes*/) { return false; }
  virtual void release(void* /*data*/) noexcept {}
};

std::unique_ptr<IoQueue> uring_queue();  // returns null if this kernel or container refuses io_uring
std::unique_ptr<IoQueue> plain_queue();

}  // namespace chorale
