// Compares the file tier (tensors stored in a file) with a reference in memory. The tests make random copies of any size and
// alignment, with both I/O queues, and with a queue that transfers fewer bytes than requested. Further tests cover every
// kind of disk failure.
#include "src/tier/file_tier.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <algorithm>
#include <random>

#include "src/memory/on_host.hpp"
#include "src/tier/staged.hpp"
#include "tests/catch.hpp"
#include "tests/refused.hpp"
#include "tests/temporary.hpp"

namespace chorale {
namespace {

// An I/O queue that changes each request and executes it immediately. The queue returns the newest request first, and counts
// the requests that it has not returned yet.
class ChangingQueue final : public IoQueue {
 public:
  using Change = std::function<void(IoRequest&)>;
  ChangingQueue(Change before, Change after) : before_(std::move(before)), after_(std::move(after)) {}
  const char* name() const override { return "a changing queue"; }
  int depth() const override { return 2; }
  void start(IoRequest& request) override {
    const std::int64_t bytes = request.bytes;
    if (before_) before_(request);
    plain_->start(request);
    ended_.push_back(&plain_->wait_for_one());
    request.bytes = bytes;
    if (after_) after_(request);
  }
  IoRequest* one_that_ended() override { return ended_.empty() ? nullptr : &wait_for_one(); }
  IoRequest& wait_for_one() override {
    require(!ended_.empty(), "no request has been started");
    IoRequest& newest = *ended_.back();
    ended_.pop_back();
    return newest;
  }
  std::int64_t in_flight() const { return std::ssize(ended_); }

 private:
  std::unique_ptr<IoQueue> plain_ = plain_queue();
  std::vector<IoRequest*> ended_;
  Change before_, after_;
};

// Page-aligned memory of `bytes` bytes.
class OnPage {
 public:
  explicit OnPage(std::int64_t bytes) : bytes_(static_cast<std::size_t>(bytes + FileTier::block)) {}
  std::byte* data() { return bytes_.data() + -reinterpret_cast<std::uintptr_t>(bytes_.data()) % FileTier::block; }

 private:
  std::vector<std::byte> bytes_;
};

// Returns the three lines of the error that the call throws, or "done".
template <class Call>
std::string error_of(Call call) {
  try {
    call();
  } catch (const Error& error) {
    const std::string text = error.what();
    CHECK((error.exit() == Exit::runtime && std::ranges::count(text, '\n') == 2));
    return text;
  }
  return "done";
}

std::vector<std::byte> random_bytes(std::int64_t count, std::mt19937_64& random) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(count));
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

// Copies, clears and reads ranges of a few tensors in random order. Returns the number of compared bytes.
std::int64_t compare_with_memory(FileTier& tier, int rounds) {
  std::mt19937_64 random(7);
  const auto below = [&](std::int64_t n) { return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n)); };
  struct Place {
    std::byte* there;
    std::vector<std::byte> here;
  };
  std::vector<Place> places;
  for (const std::int64_t bytes : {1, 4095, 4096, 12289, 3'000'000})
    places.push_back({static_cast<std::byte*>(tier.take(bytes)), std::vector<std::byte>(static_cast<std::size_t>(bytes))});
  OnPage room(4 << 20);
  std::int64_t compared = 0;
  for (int round = 0; round < rounds; ++round) {
    Place& place = places[static_cast<std::size_t>(below(std::ssize(places)))];
    const std::int64_t size = std::ssize(place.here);
    std::int64_t first = below(size), count = 1 + below(size - first);
    if (below(2)) {
      first = first / FileTier::block * FileTier::block;
      count = std::min(size - first, count);
    }
    std::byte* const memory = room.data() + (below(2) ? 0 : below(5000));
    const auto here = place.here.begin() + first;
    const auto copy = tier.async_copy();
    switch (below(4)) {
      case 0: {
        const std::vector<std::byte> bytes = random_bytes(count, random);
        std::ranges::copy(bytes, memory);
        std::ranges::copy(bytes, here);
        copy->send(place.there + first, memory, count);
        copy->wait();
        break;
      }
      case 1:
        tier.clear(place.there + first, count);
        std::fill_n(here, count, std::byte{0});
        break;
      default:
        copy->fetch(memory, place.there + first, count);
        copy->wait();
        if (!std::equal(here, here + count, memory)) return -1;
        compared += count;
    }
  }
  for (const Place& place : places) tier.give_back(place.there, std::ssize(place.here));
  return compared;
}

TEST_CASE("a file tier keeps what is written, whatever the sizes and the alignment") {
  const test::TemporaryFolder folder;
  for (auto make : {uring_queue, plain_queue}) {
    std::unique_ptr<IoQueue> queue = make();
    if (!queue) continue;  // this kernel has no usable io_uring
    FileTier tier(folder.path(), std::move(queue));
    INFO(tier.about());
    CHECK(compare_with_memory(tier, 300) > 1'000'000);
    CHECK(std::filesystem::is_empty(folder.path()));  // the file of the tier has no name
  }
}

TEST_CASE("where O_DIRECT is refused, the file is read and written through the cache, and its description says so") {
  const test::TemporaryFolder folder;
  for (auto make : {uring_queue, plain_queue}) {
    std::unique_ptr<IoQueue> queue = make();
    if (!queue) continue;
    FileTier tier(folder.path(), std::move(queue), [](const char*) { return Descriptor(); });
    CHECK_THAT(tier.about(), says(", buffered"));
    CHECK(compare_with_memory(tier, 300) > 1'000'000);
    CHECK(std::filesystem::is_empty(folder.path()));
  }
  const bool can = bool(Descriptor(open(folder.path().c_str(), O_TMPFILE | O_RDWR | O_DIRECT, 0600)));
  CHECK_THAT(FileTier(folder.path()).about(), says(can ? ", unbuffered" : ", buffered"));
}

TEST_CASE("a disk that transfers only parts of each request is asked again") {
  const test::TemporaryFolder folder;
  int calls = 0;
  const auto half = [&](IoRequest& request) {
    ++calls;
    if (request.bytes > 8192) request.bytes = request.bytes / 3 / 512 * 512;
  };
  FileTier tier(folder.path(), std::make_unique<ChangingQueue>(half, nullptr));
  CHECK(compare_with_memory(tier, 100) > 100'000);
  CHECK(calls > 200);
}

TEST_CASE("blocks that were never written cost no transfer, and a cleared range costs none for whole blocks") {
  const test::TemporaryFolder folder;
  FileTier tier(folder.path());
  auto* const there = static_cast<std::byte*>(tier.take(1 << 20));
  std::vector<std::byte> here(1 << 20, std::byte{1});
  tier.copy_out(here.data(), there, 1 << 20);
  CHECK((std::ranges::count(here, std::byte{0}) == 1 << 20 && tier.read_bytes() == 0));
  tier.copy_in(there, here.data(), 1 << 20);
  CHECK(tier.written_bytes() == 1 << 20);
  tier.clear(there, 1 << 20);
  tier.copy_out(here.data(), there, 1 << 20);
  CHECK((tier.read_bytes() == 0 && tier.written_bytes() == 1 << 20));
  tier.give_back(there, 1 << 20);
}

TEST_CASE("errors of the disk end in three lines, and damaged bytes are noticed") {
  const test::TemporaryFolder folder;
  std::vector<std::byte> bytes(20000, std::byte{5});
  bool reads = false, fails = true;
  const auto write_and_read = [&](const ChangingQueue::Change& after) {
    return error_of([&] {
      FileTier tier(folder.path(), std::make_unique<ChangingQueue>(nullptr, after));
      void* const there = tier.take(20000);
      tier.copy_in(there, bytes.data(), 20000);
      tier.copy_out(bytes.data(), there, 20000);
    });
  };
  const auto if_kind = [&](auto&& change) {
    return [&, change](IoRequest& r) {
      if (fails && (r.kind == IoRequest::Kind::read) == reads) change(r);
    };
  };
  CHECK_THAT(write_and_read(if_kind([](IoRequest& r) { r.result = -EIO; })),
             says("could not be written") && says("Input/output error") && says("--offload-folder"));
  CHECK_THAT(write_and_read(if_kind([](IoRequest& r) { r.result = 0; })), says("No space left on device"));
  reads = true;
  CHECK_THAT(write_and_read(if_kind([](IoRequest& r) { r.result = -EIO; })), says("could not be read"));
  CHECK_THAT(write_and_read(if_kind([](IoRequest& r) { static_cast<std::byte*>(r.data)[1] ^= std::byte{16}; })),
             says("came back damaged") && says("the last checkpoint"));
  fails = false;
  CHECK(write_and_read(if_kind([](IoRequest&) {})) == "done");
}

// A copy of 20000 bytes consists of four complete blocks and a remainder. The blocks are transferred in the background. The
// remainder is transferred immediately, and this transfer fails.
TEST_CASE("no copy ends with an error while requests that use its memory are in flight") {
  const test::TemporaryFolder folder;
  OnPage here(20000);
  bool fails = false;
  auto queue = std::make_unique<ChangingQueue>(nullptr, [&](IoRequest& r) {
    if (fails && r.bytes == FileTier::block) r.result = -EIO;
  });
  const ChangingQueue& seen = *queue;
  FileTier tier(folder.path(), std::move(queue));
  void* const there = tier.take(20000);
  tier.copy_in(there, here.data(), 20000);
  fails = true;
  CHECK_THAT(error_of([&] { tier.copy_in(there, here.data(), 20000); }), says("Input/output error"));
  CHECK(seen.in_flight() == 0);
  CHECK_THAT(error_of([&] { tier.copy_out(here.data(), there, 20000); }), says("Input/output error"));
  CHECK(seen.in_flight() == 0);
  {
    const auto copy = tier.async_copy();
    CHECK_THAT(error_of([&] { copy->fetch(here.data(), there, 20000); }), says("Input/output error"));
    CHECK(seen.in_flight() == 1);  // the destructor of `copy` waits for this request
  }
  CHECK(seen.in_flight() == 0);
  fails = false;
  tier.copy_in(there, here.data(), 20000);
  CHECK(seen.in_flight() == 0);
}

TEST_CASE("a request that the queue refuses to start is an error, and nobody waits for it") {
  const test::TemporaryFolder folder;
  OnPage here(5 << 20);  // the copy needs two requests
  int starts = 0, refuses = 0;
  auto queue = std::make_unique<ChangingQueue>(
      [&](IoRequest& r) {
        if (++starts == refuses) throw Error(Exit::runtime, "refused", "by the test", "none");
        if (refuses == 3) r.bytes = 4096;  // the third request transfers the remaining bytes
      },
      nullptr);
  const ChangingQueue& seen = *queue;
  FileTier tier(folder.path(), std::move(queue));
  void* const there = tier.take(5 << 20);
  for (refuses = 1; refuses <= 3; ++refuses) {
    INFO(refuses);
    starts = 0;
    const std::string error = error_of([&] {
      const auto copy = tier.async_copy();
      copy->send(there, here.data(), 5 << 20);
      copy->wait();
    });
    CHECK_THAT(error, says(refuses < 3 ? "refused" : "could not be written"));
    CHECK(seen.in_flight() == 0);
  }
  tier.copy_in(there, here.data(), 5 << 20);
  tier.copy_out(here.data(), there, 5 << 20);
}

TEST_CASE("if requests in flight cannot be waited for, the program ends with an error, not with an exception") {
  class Stuck final : public IoQueue {
    const char* name() const override { return "a stuck queue"; }
    int depth() const override { return 2; }
    void start(IoRequest&) override {}
    IoRequest* one_that_ended() override { return nullptr; }
    IoRequest& wait_for_one() override { throw Error(Exit::runtime, "stuck", "by the test", "none"); }
  };
  const test::TemporaryFolder folder;
  const pid_t child = fork();
  if (child == 0) {
    if (!std::freopen("/dev/null", "w", stderr)) std::_Exit(97);
    std::set_terminate([] { std::_Exit(99); });
    OnPage here(4096);
    FileTier tier(folder.path(), std::make_unique<Stuck>());
    tier.async_copy()->send(tier.take(4096), here.data(), 4096);
    std::_Exit(98);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == static_cast<int>(Exit::runtime)));
}

// The test maps a new page at the address of a pinned page. I/O requests with this address must still access the pinned
// page.
TEST_CASE("io_uring reads and writes pinned memory without looking its pages up again, until it is released") {
  void* const at = mmap(nullptr, FileTier::block, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(at != MAP_FAILED);
  const auto fresh_page = [&](int filled) {
    REQUIRE(mmap(at, FileTier::block, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at);
    std::memset(at, filled, FileTier::block);
  };
  const auto first = [&] { return *static_cast<const volatile std::uint8_t*>(at); };
  fresh_page(1);
  std::unique_ptr<IoQueue> owned = uring_queue();
  IoQueue* const queue = owned.get();
  const test::TemporaryFolder folder;
  FileTier tier(folder.path(), std::move(owned));
  if (queue && queue->pin(at, FileTier::block)) {  // false if the kernel or its limits do not allow pinning
    void* const there = tier.take(FileTier::block);
    tier.copy_in(there, at, FileTier::block);
    fresh_page(2);
    // The pinned page gets the 1s, but `at` now maps a page of 2s.
    CHECK_THROWS_AS(tier.copy_out(at, there, FileTier::block), Error);
    CHECK(first() == 2);
    tier.release(at);
    tier.copy_out(at, there, FileTier::block);
    CHECK(first() == 1);

    REQUIRE(queue->pin(at, FileTier::block));
    fresh_page(3);
    tier.copy_in(there, at, FileTier::block);  // writes the 1s of the pinned page, but the checksum of 3s
    tier.release(at);
    CHECK_THROWS_AS(tier.copy_out(at, there, FileTier::block), Error);
    tier.give_back(there, FileTier::block);
  }
  munmap(at, FileTier::block);
}

TEST_CASE("space is reserved through the page cache, where every file system can") {
  const test::TemporaryFolder folder;
  FileTier tier(folder.path(), nullptr, [](const char* path) { return Descriptor(open(path, O_RDONLY)); });
  CHECK(tier.take(100) != nullptr);
}

TEST_CASE("the CPU cannot read elements of a tensor in the tier") {
  const test::TemporaryFolder folder;
  FileTier tier(folder.path());
  Ledger ledger;
  Allocator slow(tier, ledger);
  const Tensor there(slow, {4}, DType::f32, Category::optimizer);
  CHECK_THROWS_AS(there.values<float>(), Error);
}

// A Memory that runs a check each time a block is freed.
class Watching final : public Memory {
 public:
  explicit Watching(std::function<void()> look) : look_(std::move(look)) {}
  Device device() const override { return {}; }
  void* take(std::int64_t bytes) override { return host_.take(bytes); }
  void give_back(void* place, std::int64_t bytes) noexcept override {
    look_();
    host_.give_back(place, bytes);
  }

 private:
  HostMemory host_;
  std::function<void()> look_;
};

TEST_CASE("a copy of a tensor that is replaced frees its buffer only when its reads are over") {
  const test::TemporaryFolder folder;
  auto queue = std::make_unique<ChangingQueue>(nullptr, nullptr);
  const ChangingQueue& seen = *queue;
  FileTier tier(folder.path(), std::move(queue));
  int freed = 0, early = 0;
  Watching watching([&] {
    ++freed;
    early += seen.in_flight() > 0;
  });
  Ledger here, there;
  Allocator memory(watching, here), slow(tier, there);
  const Tensor tensor(slow, {4096}, DType::f32, Category::params);
  TierTraffic traffic;
  Staged staged(memory, 4096, DType::f32, Category::params);
  staged.start_write(tensor, traffic);
  CHECK(seen.in_flight() == 1);
  staged = Staged();
  CHECK((freed == 1 && early == 0 && seen.in_flight() == 0));
}

TEST_CASE("a folder that does not exist or has no room is refused in three lines") {
  CHECK_THAT(test::refused([] { FileTier("/nonexistent/folder"); }),
             says("cannot be used") && says("No such file or directory") && says("--offload-folder"));
  const test::TemporaryFolder folder;
  FileTier tier(folder.path());
  CHECK_THAT(error_of([&] { tier.take(std::int64_t{1} << 43); }), says("no room for offloaded tensors") && says(" free"));
  CHECK(tier.take(100) != nullptr);  // the tier is still usable
}

}  // namespace
}  // namespace chorale
