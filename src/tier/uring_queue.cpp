#include <liburing.h>

#include <cerrno>

#include "src/base/error.hpp"
#include "src/tier/io_queue.hpp"

namespace chorale {
namespace {

constexpr int entries = 64;

class UringQueue final : public IoQueue {
 public:
  explicit UringQueue(const io_uring& ring) : ring_(ring) {}
  ~UringQueue() override { io_uring_queue_exit(&ring_); }
  const char* name() const override { return "io_uring"; }
  int depth() const override { return entries; }

  void start(IoRequest& r) override {
    io_uring_sqe* const entry = io_uring_get_sqe(&ring_);
    require(entry != nullptr, "the queue has room for {} requests only", entries);
    const auto bytes = static_cast<unsigned>(r.bytes);
    if (r.kind == IoRequest::Kind::read)
      io_uring_prep_read(entry, r.file, r.data, bytes, static_cast<std::uint64_t>(r.offset));
    else
      io_uring_prep_write(entry, r.file, r.data, bytes, static_cast<std::uint64_t>(r.offset));
    io_uring_sqe_set_data(entry, &r);
    int started = 0;
    do started = io_uring_submit(&ring_);
    while (started == -EINTR || started == -EAGAIN);
    if (started < 0) {  // the entry stays in the ring, so it must not lead to the request
      io_uring_prep_nop(entry);
      io_uring_sqe_set_data(entry, nullptr);
    }
    require(started >= 0, "io_uring took no request: error {}", -started);
  }

  IoRequest* one_that_ended() override {
    io_uring_cqe* ended = nullptr;
    while (io_uring_peek_cqe(&ring_, &ended) == 0)
      if (IoRequest* const request = taken(ended)) return request;
    return nullptr;
  }

  IoRequest& wait_for_one() override {
    for (;;) {
      io_uring_cqe* ended = nullptr;
      int error = 0;
      do error = io_uring_wait_cqe(&ring_, &ended);
      while (error == -EINTR);
      require(error == 0, "waiting for io_uring failed: error {}", -error);
      if (IoRequest* const request = taken(ended)) return *request;
    }
  }

 private:
  // Null for an entry whose start failed.
  IoRequest* taken(io_uring_cqe* ended) {
    auto* const request = static_cast<IoRequest*>(io_uring_cqe_get_data(ended));
    if (request) request->result = ended->res;
    io_uring_cqe_seen(&ring_, ended);
    return request;
  }

  io_uring ring_;
};

}  // namespace

std::unique_ptr<IoQueue> uring_queue() {
  io_uring ring{};
  if (io_uring_queue_init(entries, &ring, 0) < 0) return nullptr;
  return std::make_unique<UringQueue>(ring);
}

}  // namespace chorale
