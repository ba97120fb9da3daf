// A flag page is the shared memory in which a rank tells the other ranks of a group about its calls. In this test, the two
// ranks of a pair (a group of two) leave at the same time. No rank is allowed to access its peer's flag page once the peer
// can have freed this page. The test stops one rank just after this rank has mapped its peer's flag page. The stopped rank
// continues when the peer has left and freed its flag pages. Freed flag pages are filled with a pattern and are not returned
// to the system. At the end, the pattern must be intact.
#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <functional>

#include "collectives/backends/mapped/group.hpp"
#include "src/base/error.hpp"
#include "tests/catch.hpp"

using namespace chorale;
using namespace chorale::mapped;

namespace {

constexpr unsigned char paint = 0xAB;

class Graveyard final : public Memory {
 public:
  ~Graveyard() override {
    for (const auto& [place, bytes] : dead_) std::free(place);
  }
  Device device() const override { return {}; }
  void* take(std::int64_t bytes) override {
    return std::aligned_alloc(128, static_cast<std::size_t>((bytes + 127) / 128 * 128));
  }
  void give_back(void* place, std::int64_t bytes) noexcept override {
    std::memset(place, paint, static_cast<std::size_t>(bytes));
    dead_.emplace_back(static_cast<unsigned char*>(place), bytes);
  }
  std::size_t taken_down() const { return dead_.size(); }
  bool left_alone() const {
    return std::all_of(dead_.begin(), dead_.end(), [](const auto& dead) {
      return std::count(dead.first, dead.first + dead.second, paint) == dead.second;
    });
  }

 private:
  std::vector<std::pair<unsigned char*, std::int64_t>> dead_;
};

class PlainReach final : public Reach {
 public:
  Location locate(const void* mine) const override { return std::bit_cast<Location>(mine); }
  void* map(int, Location location) const override {
    if (found) found();
    return std::bit_cast<void*>(location);
  }
  bool has_kernel_copies() const override { return false; }
  void read(int, Location, void*, std::int64_t) const override {}
  void write(int, Location, const void*, std::int64_t) const override {}
  Allocator& memory() override { return allocator_; }

  Graveyard graveyard;
  std::function<void()> found;  // called whenever a peer's flag page is mapped

 private:
  Ledger ledger_;
  Allocator allocator_{graveyard, ledger_};
};

// One of the two ranks, with its memory, its group and its pair.
struct Side {
  PlainReach* reach = new PlainReach;
  std::shared_ptr<FlagPages> pages = std::make_shared<FlagPages>(std::unique_ptr<Reach>(reach));
  std::unique_ptr<MappedGroup> group;
  std::unique_ptr<Group> pair;

  void leave() {
    pair.reset();
    pages->create(2);  // frees all flag pages that all members have left; the new page is freed at once
  }
};

struct Two {
  Side a, b;
  Two() {
    Buffer first = a.pages->create(2), second = b.pages->create(2);
    const std::vector<std::int64_t> offers{static_cast<std::int64_t>(a.reach->locate(first.data())),
                                           static_cast<std::int64_t>(b.reach->locate(second.data()))};
    a.group = std::make_unique<MappedGroup>(a.pages, Membership{{0, 1}, 0, 1, offers}, std::move(first));
    b.group = std::make_unique<MappedGroup>(b.pages, Membership{{0, 1}, 1, 1, offers}, std::move(second));
  }
  ~Two() {
    a.group.reset();
    b.group.reset();
  }  // destroys both groups before the flag pages of either rank
};

}  // namespace

TEST_CASE("when two ranks of a pair leave at once, no freed flag page is accessed and every flag page is freed",
          "[mapped]") {
  Two two;
  auto& [a, b] = two;
  a.pair = a.group->pair(0, 1);
  b.pair = b.group->pair(0, 1);
  a.reach->found = [&] { b.leave(); };
  a.leave();
  CHECK(b.reach->graveyard.left_alone());
  b.leave();
  for (const Side* side : {&a, &b}) {
    CHECK(side->reach->graveyard.left_alone());
    CHECK(side->reach->graveyard.taken_down() == (side == &a ? 2 : 3));  // the pair's flag page, and one per call of leave()
  }
}

TEST_CASE("a flag page that would be too large to outlive its owner is refused", "[mapped]") {
  FlagPages pages(std::make_unique<PlainReach>());
  CHECK_THROWS_AS(pages.create(100'000), Error);
}

TEST_CASE("when a rank leaves a pair that the other has not created yet, every flag page is freed", "[mapped]") {
  Two two;
  auto& [a, b] = two;
  a.pair = a.group->pair(0, 1);
  a.leave();
  b.pair = b.group->pair(0, 1);
  b.leave();
  a.leave();
  CHECK(a.reach->graveyard.taken_down() == 3);
  CHECK(b.reach->graveyard.taken_down() == 2);
  CHECK((a.reach->graveyard.left_alone() && b.reach->graveyard.left_alone()));
}
