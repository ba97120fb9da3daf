// Checks the process that keeps snapshots: it returns the files of dead ranks, drops earlier starts, and answers only to its
// name. Also checks which steps count as complete.
#include "src/base/keeper/keeper.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "src/base/abstract_socket.hpp"
#include "tests/catch.hpp"
#include "tests/device.hpp"

namespace chorale::test {
namespace {

std::vector<std::int64_t> steps_of(const std::vector<KeptStep>& kept) {
  std::vector<std::int64_t> steps;
  for (const KeptStep& one : kept) steps.push_back(one.step);
  return steps;
}

KeptFiles files_with(std::int64_t step, const std::string& image) {
  KeptFiles files{Descriptor(memfd_create("info", 0)), Descriptor(memfd_create("image", 0))};
  KeptHead head;
  head.step = step;
  REQUIRE(pwrite(files.info.get(), &head, sizeof head, 0) == sizeof head);
  REQUIRE(pwrite(files.image.get(), image.data(), image.size(), 0) == static_cast<ssize_t>(image.size()));
  return files;
}

std::string text_in(int file) {
  char text[64] = {};
  const ssize_t got = pread(file, text, sizeof text, 0);
  return {text, static_cast<std::size_t>(std::max<ssize_t>(got, 0))};
}

// A keeper for the time of a test.
struct RunningKeeper {
  std::string name = fmt::format("test-{}-{}", getpid(), ++count);
  pid_t process = Keeper::start(name);
  ~RunningKeeper() {
    kill(process, SIGKILL);
    waitpid(process, nullptr, 0);
  }
  static inline int count = 0;
};

}  // namespace

TEST_CASE("a step is complete if all ranks of a start have kept it") {
  CHECK(complete_steps({}).empty());
  CHECK(steps_of(complete_steps({{1, 0, 2, {5, 6}}, {1, 1, 2, {5, 6}}})) == std::vector<std::int64_t>{6, 5});
  CHECK(steps_of(complete_steps({{1, 0, 2, {5, 6}}, {1, 1, 2, {5, 4}}})) == std::vector<std::int64_t>{5});
  CHECK(steps_of(complete_steps({{1, 0, 2, {7, -1}}, {1, 1, 2, {-1, 7}}})) == std::vector<std::int64_t>{7});
  CHECK(complete_steps({{1, 0, 2, {-1, -1}}, {1, 1, 2, {-1, -1}}}).empty());  // no snapshot yet
  CHECK(complete_steps({{1, 0, 2, {5, 6}}}).empty());                         // a rank is missing
  CHECK(steps_of(complete_steps({{1, 0, 2, {5, 6}}, {1, 1, 2, {5, 6}}, {1, 0, 2, {4, 5}}})) ==
        std::vector<std::int64_t>{6, 5});                                 // two hosts have rank 0
  CHECK(complete_steps({{1, 0, 2, {5, 6}}, {2, 1, 2, {5, 6}}}).empty());  // ranks of different starts
  const auto both = complete_steps({{1, 0, 1, {5, 6}}, {2, 0, 1, {6, 7}}});
  CHECK(steps_of(both) == std::vector<std::int64_t>{7, 6, 6, 5});
  CHECK(both[1].start == 2);  // of equal steps, the newest start comes first
}

TEST_CASE("a keeper gives back the files of ranks that are gone, and drops earlier starts") {
  const RunningKeeper keeper;
  REQUIRE(keeper.process > 0);
  for (int rank = 0; rank < 2; ++rank) {
    KeeperLine line(keeper.name);  // closed at the end of this block, like that of a rank that dies
    REQUIRE(
        line.keep({1, rank, 2}, {files_with(8, fmt::format("old {}", rank)), files_with(9, fmt::format("new {}", rank))}));
  }
  KeeperLine line(keeper.name);
  REQUIRE(line.is_open());
  CHECK(steps_of(complete_steps(line.list())) == std::vector<std::int64_t>{9, 8});
  const auto taken = line.take(1, 1);
  CHECK(kept_step(taken[1].info.get()) == 9);
  CHECK(text_in(taken[1].image.get()) == "new 1");
  CHECK(text_in(taken[0].image.get()) == "old 1");
  CHECK(!line.take(1, 2)[0].info);
  CHECK(!line.take(2, 0)[0].info);

  REQUIRE(line.keep({2, 0, 1}, {files_with(-1, ""), files_with(-1, "")}));
  CHECK(line.list().size() == 3);  // start 2 has no complete step yet
  REQUIRE(line.keep({2, 0, 1}, {files_with(10, "newest"), files_with(-1, "")}));
  usleep(1'200'000);               // the keeper looks twice a second
  CHECK(line.list().size() == 3);  // ranks of start 2 on other hosts might have kept no step yet
  REQUIRE(line.keep({2, 0, 1}, {files_with(10, "older"), files_with(11, "newest")}));
  for (int look = 0; look < 500 && line.list().size() > 1; ++look) usleep(10'000);
  const auto left = line.list();
  REQUIRE(left.size() == 1);
  CHECK(left[0].start == 2);
}

TEST_CASE("a keeper is reached by its name only, and a dead one by none") {
  std::string name;
  {
    const RunningKeeper keeper;
    name = keeper.name;
    CHECK(KeeperLine(name).is_open());
    CHECK(!KeeperLine(name + "x").is_open());
    CHECK(!KeeperLine("").is_open());
    CHECK(Keeper::start(name) == -1);           // the name is taken
    CHECK_FALSE(Keeper::keep(name, "n0", ""));  // and its keeper serves this user: the host has two names
  }
  KeeperLine line(name);
  CHECK(!line.is_open());
  CHECK(line.list().empty());
  CHECK(!line.keep({1, 0, 1}, {files_with(1, ""), files_with(2, "")}));
}

TEST_CASE("a keeper of another user is not believed, even under the right name") {
  if (geteuid() != 0) return skip_case("only root can become another user");
  const std::string name = fmt::format("test-{}-other", getpid());
  int ready[2];
  REQUIRE(pipe(ready) == 0);
  const pid_t other = fork();
  if (other == 0) {
    const AbstractAddress address(fmt::format("chorale-keeper-0-{}", name));
    const int listening = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    constexpr uid_t nobody = 65534;
    const bool listens =
        setuid(nobody) == 0 && bind(listening, address.get(), address.length()) == 0 && listen(listening, 4) == 0;
    [[maybe_unused]] const auto told = write(ready[1], &listens, 1);
    pause();
    _exit(0);
  }
  bool listens = false;
  CHECK((read(ready[0], &listens, 1) == 1 && listens));
  CHECK(!KeeperLine(name).is_open());
  kill(other, SIGKILL);
  waitpid(other, nullptr, 0);
  for (const int end : ready) close(end);
}

TEST_CASE("a file that is no snapshot has no step") {
  CHECK(kept_step(-1) == -1);
  CHECK(kept_step(files_with(3, "").image.get()) == -1);
  const Descriptor other(memfd_create("other", 0));
  const std::string noise(sizeof(KeptHead), 'x');
  REQUIRE(pwrite(other.get(), noise.data(), noise.size(), 0) == static_cast<ssize_t>(noise.size()));
  CHECK(kept_step(other.get()) == -1);
  KeptHead newer{.magic = KeptHead::format + 1};  // of another version of the program
  newer.step = 3;
  REQUIRE(pwrite(other.get(), &newer, sizeof newer, 0) == sizeof newer);
  CHECK(kept_step(other.get()) == -1);
}

}  // namespace chorale::test
