// The file tier against a model of it in memory: random copies of any size and alignment, by both queues, and by one that
// transfers less than it was asked for. Then every way in which a disk fails.
#include "src/tier/file_tier.hpp"

#include <algorithm>
#include <numeric>
#include <random>

#include "src/memory/on_host.hpp"
#include "src/tier/windows.hpp"
#include "tests/catch.hpp"
#include "tests/refused.hpp"
#include "tests/temporary.hpp"

namespace chorale {
namespace {

// Passes requests on, after a change to each.
class ChangingQueue final : public IoQueue {
 public:
  using Change = std::function<void(IoRequest&)>;
  ChangingQueue(Change before, Change after) : before_(std::move(before)), after_(std::move(after)) {}
  const char* name() const override { return "a changing queue"; }
  int depth() const override { return 2; }
  void start(IoRequest& request) override {
    const std::int64_t bytes = request.bytes;
    if (before_) before_(request);
    if (request.bytes >= 0) plain_->start(request);
    request.bytes = bytes;
    if (after_) after_(request);
  }
  IoRequest* one_that_ended() override { return plain_->one_that_ended(); }
  IoRequest& wait_for_one() override { return plain_->wait_for_one(); }

 private:
  std::unique_ptr<IoQueue> plain_ = plain_queue();
  Change before_, after_;
};

// The three lines of the error that the call throws, or "done".
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

// Copies, clears and reads ranges of a few tensors in any order. Returns how many bytes were compared.
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
  std::vector<std::byte> room(4 << 20);
  std::int64_t compared = 0;
  for (int round = 0; round < rounds; ++round) {
    Place& place = places[static_cast<std::size_t>(below(std::ssize(places)))];
    const std::int64_t size = std::ssize(place.here);
    std::int64_t first = below(size), count = 1 + below(size - first);
    if (below(2)) first = first / FileTier::block * FileTier::block, count = std::min(size - first, count);
    auto* const page = reinterpret_cast<std::byte*>((reinterpret_cast<std::uintptr_t>(room.data()) + 4095) / 4096 * 4096);
    std::byte* const memory = page + (below(2) ? 0 : below(5000));
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
    if (!queue) continue;  // this kernel refuses io_uring
    FileTier tier(folder.path(), std::move(queue));
    INFO(tier.about());
    CHECK(compare_with_memory(tier, 300) > 1'000'000);
    CHECK(std::filesystem::is_empty(folder.path()));  // the file has no name
  }
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

TEST_CASE("a folder that does not exist or has no room is refused in three lines") {
  CHECK_THAT(test::refused([] { FileTier("/nonexistent/folder"); }),
             says("cannot be used") && says("No such file or directory") && says("--offload-folder"));
  const test::TemporaryFolder folder;
  FileTier tier(folder.path());
  CHECK_THAT(error_of([&] { tier.take(std::int64_t{1} << 43); }), says("no room for offloaded tensors") && says(" free"));
  CHECK(tier.take(100) != nullptr);  // still usable
}

TEST_CASE("windows visit all elements of tensors in memory and in the tier, and write what they changed") {
  const test::TemporaryFolder folder;
  FileTier tier(folder.path());
  HostMemory host;
  Ledger here, there;
  Allocator memory(host, here), slow(tier, there);
  for (const std::int64_t elements : {1024, 2048, 1 << 20}) {
    std::vector<WindowParts> items;
    for (const std::int64_t count : {5, 1024, 5000}) {
      const Tensor numbers(memory, {count}, DType::i64, Category::data),
          sums(slow, {count}, DType::i64, Category::optimizer);
      std::iota(numbers.values<std::int64_t>().begin(), numbers.values<std::int64_t>().end(), 10 * count);
      items.push_back({{numbers}, {sums, Category::optimizer, true, true}, {}});
    }
    TierTraffic traffic;
    for (int time = 0; time < 3; ++time)
      through_windows(items, elements, memory, traffic, [](const Window&, std::span<const Tensor> window) {
        for (std::int64_t i = 0; i < window[0].count(); ++i)
          window[1].values<std::int64_t>()[static_cast<std::size_t>(i)] +=
              window[0].values<std::int64_t>()[static_cast<std::size_t>(i)];
      });
    for (const WindowParts& item : items)
      with_values<std::int64_t>(item[1].whole, Use::read, [&](std::span<std::int64_t> sums) {
        const auto numbers = item[0].whole.values<std::int64_t>();
        for (std::size_t i = 0; i < sums.size(); ++i) REQUIRE(sums[i] == 3 * numbers[i]);
      });
    const auto optimizer = static_cast<std::size_t>(Category::optimizer);
    CHECK((traffic.read[optimizer] == 3 * 8 * 6029 && traffic.written[optimizer] == 3 * 8 * 6029));
    CHECK(here.peak(Category::optimizer) <= 3 * (elements * 8 + FileTier::block));
  }
}

}  // namespace
}  // namespace chorale
