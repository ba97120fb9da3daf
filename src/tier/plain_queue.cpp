#include <unistd.h>

#include <cerrno>
#include <deque>

#include "src/base/error.hpp"
#include "src/tier/io_queue.hpp"

namespace chorale {
namespace {

class PlainQueue final : public IoQueue {
 public:
  const char* name() const override { return "pread and pwrite"; }
  int depth() const override { return 1 << 20; }

  void start(IoRequest& r) override {
    const auto bytes = static_cast<std::size_t>(r.bytes);
    do
      r.result =
          r.kind == IoRequest::Kind::read ? pread(r.file, r.data, bytes, r.offset) : pwrite(r.file, r.data, bytes, r.offset);
    while (r.result < 0 && errno == EINTR);
    if (r.result < 0) r.result = -errno;
    ended_.push_back(&r);
  }

  IoRequest* one_that_ended() override { return ended_.empty() ? nullptr : &wait_for_one(); }

  IoRequest& wait_for_one() override {
    require(!ended_.empty(), "no request has been started");
    IoRequest& first = *ended_.front();
    ended_.pop_front();
    return first;
  }

 private:
  std::deque<IoRequest*> ended_;
};

}  // namespace

std::unique_ptr<IoQueue> plain_queue() { return std::make_unique<PlainQueue>(); }

}  // namespace chorale
