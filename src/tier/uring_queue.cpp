#include <liburing.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "src/base/error.hpp"
#include "src/tier/io_queue.hpp"

namespace chorale {
namespace {

constexpr int entries = 64, most_pinned = 64;

class UringQueue final : public IoQueue {
 public:
  explicit UringQueue(const io_uring& ring) : ring_(ring) {
    can_pin_ = io_uring_register_buffers_sparse(&ring_, most_pinned) == 0;  // since Linux 5.19
  }
  ~UringQueue() override { io_uring_queue_exit(&ring_); }
  const char* name() const override { return "io_uring"; }
  int depth() const override { return entries; }

  void start(IoRequest& r) override {
    io_uring_sqe* const entry = io_uring_get_sqe(&ring_);
    require(entry != nullptr, "the queue has room for {} requests only", entries);
    const auto bytes = static_cast<unsigned>(r.bytes);
    const auto offset = static_cast<std::uint64_t>(r.offset);
    const int pinned = slot([&](const iovec& memory) { return contains(memory, r); });
    if (r.kind == IoRequest::Kind::read && pinned >= 0)
      io_uring_prep_read_fixed(entry, r.file, r.data, bytes, offset, pinned);
    else if (r.kind == IoRequest::Kind::read)
      io_uring_prep_read(entry, r.file, r.data, bytes, offset);
    else if (pinned >= 0)
      io_uring_prep_write_fixed(entry, r.file, r.data, bytes, offset, pinned);
    else
      io_uring_prep_write(entry, r.file, r.data, bytes, offset);
    io_uring_sqe_set_data(entry, &r);
    int started = 0;
    do started = io_uring_submit(&ring_);
    while (started == -EINTR || started == -EAGAIN);
    if (started < 0) {  // the entry stays in the ring, so it must no longer refer to the request
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

  bool pin(void* data, std::int64_t bytes) override {
    const int free = can_pin_ ? slot([](const iovec& memory) { return memory.iov_base == nullptr; }) : -1;
    return free >= 0 && set(free, {data, static_cast<std::size_t>(bytes)});
  }

  void release(void* data) noexcept override {
    const int pinned = slot([&](const iovec& memory) { return memory.iov_base == data; });
    if (pinned < 0) return;
    pinned_[static_cast<std::size_t>(pinned)].iov_len = 0;  // even if the kernel refuses the update, requests stop using the
                                                            // old pages
    set(pinned, {});
  }

 private:
  static bool contains(const iovec& memory, const IoRequest& r) {
    const auto* const first = static_cast<const std::byte*>(memory.iov_base);
    const auto* const data = static_cast<const std::byte*>(r.data);
    return first != nullptr && data >= first && data + r.bytes <= first + memory.iov_len;
  }

  template <typename Is>
  int slot(const Is& is) const {
    const auto found = std::ranges::find_if(pinned_, is);
    return found == pinned_.end() ? -1 : static_cast<int>(found - pinned_.begin());
  }

  bool set(int slot, iovec memory) noexcept {
    const auto at = static_cast<unsigned>(slot);
    if (io_uring_register_buffers_update_tag(&ring_, at, &memory, nullptr, 1) < 0) return false;
    pinned_[at] = memory;
    return true;
  }

  // Returns the request of a completed entry; null if the request could not be started.
  IoRequest* taken(io_uring_cqe* ended) {
    auto* const request = static_cast<IoRequest*>(io_uring_cqe_get_data(ended));
    if (request) request->result = ended->res;
    io_uring_cqe_seen(&ring_, ended);
    return request;
  }

  io_uring ring_;
  bool can_pin_ = false;
  std::array<iovec, most_pinned> pinned_{};  // an entry without an address is free
};

}  // namespace

std::unique_ptr<IoQueue> uring_queue() {
  io_uring ring{};
  if (io_uring_queue_init(entries, &ring, 0) < 0) return nullptr;
  return std::make_unique<UringQueue>(ring);
}

}  // namespace chorale
