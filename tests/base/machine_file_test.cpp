#include "src/base/machine_file.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <iterator>

#include "src/base/host.hpp"
#include "tests/catch.hpp"
#include "tests/temporary.hpp"

using namespace chorale;

namespace {

const PeakKey two_cores{"f32", "2 cores", "a library"};

std::string text_of(const std::filesystem::path& file) {
  std::ifstream stream(file);
  return {std::istreambuf_iterator<char>(stream), {}};
}

void write(const std::filesystem::path& file, const std::string& text) { std::ofstream(file) << text; }

}  // namespace

TEST_CASE("a measured peak is kept for its type, processor and library until a newer one replaces it") {
  const test::TemporaryFolder folder;
  const MachineFile file(folder / "cache/deep/machine-vm.json");  // keep() creates the folders
  CHECK(!file.peak(two_cores));
  CHECK(file.keep(two_cores, {4.5e11, "2026-11-22T05:40:01Z", true}).empty());
  CHECK(file.keep({"bf16", "2 cores", "a library"}, {9e11, "2026-11-22T05:41:00Z", false}).empty());
  CHECK((file.peak(two_cores)->flops == 4.5e11 && file.peak(two_cores)->busy));
  CHECK(file.peak(two_cores)->measured == "2026-11-22T05:40:01Z");
  CHECK(file.keep(two_cores, {5e11, "2026-11-23T05:40:01Z", false}).empty());
  CHECK((file.peak(two_cores)->flops == 5e11 && !file.peak(two_cores)->busy));
  CHECK(file.peak({"bf16", "2 cores", "a library"})->flops == 9e11);
  for (const PeakKey& other :
       {PeakKey{"f64", "2 cores", "a library"}, PeakKey{"f32", "1 core", "a library"}, PeakKey{"f32", "2 cores", "another"}})
    CHECK(!file.peak(other));
}

TEST_CASE("sections that a program does not know stay in the machine's file") {
  const test::TemporaryFolder folder;
  const auto path = folder / "machine.json";
  write(path, R"({"schema":"chorale machine","version":1,"machine":")" + machine_signature() +
                  R"(","levels":[{"latency":1e-6}],"peaks":[]})");
  CHECK(MachineFile(path).keep(two_cores, {1e9, "today", false}).empty());
  CHECK(text_of(path).find("\"latency\": 1e-06") != std::string::npos);
  CHECK(MachineFile(path).peak(two_cores));
}

TEST_CASE("a damaged file, or one of another machine, counts as empty and is replaced") {
  const test::TemporaryFolder folder;
  const auto path = folder / "machine.json";
  const MachineFile file(path);
  REQUIRE(file.keep(two_cores, {1e9, "today", false}).empty());
  const std::string good = text_of(path);
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    REQUIRE(text.find(from) != std::string::npos);
    return text.replace(text.find(from), from.size(), to);
  };
  for (const std::string& bad :
       {std::string(), std::string("{"), std::string("[1, 2]"), good.substr(0, good.size() / 2),
        with("chorale machine", "x"), with("\"version\": 1", "\"version\": 2"), with(machine_signature(), "another machine"),
        with("\"peaks\"", "\"beaks\""), with("1000000000.0", "\"fast\""), with("1000000000.0", "-1"), with("false", "0"),
        with("\"today\"", "null")}) {
    write(path, bad);
    INFO(bad);
    CHECK(!file.peak(two_cores));
    CHECK(file.keep(two_cores, {2e9, "later", false}).empty());
    CHECK(file.peak(two_cores)->flops == 2e9);
  }
}

TEST_CASE("if the file cannot be written, keep() says why and nothing else fails") {
  const MachineFile nowhere("/proc/none/machine.json");
  CHECK(!nowhere.keep(two_cores, {1e9, "today", false}).empty());
  CHECK(!nowhere.peak(two_cores));
  CHECK(MachineFile("").keep(two_cores, {1e9, "today", false}) == "neither XDG_CACHE_HOME nor HOME is set");
}

TEST_CASE("programs that write at the same time leave one complete file") {
  const test::TemporaryFolder folder;
  const MachineFile file(folder / "machine.json");
  REQUIRE(file.keep(two_cores, {1e9, "today", false}).empty());
  for (int writer = 1; writer <= 4; ++writer)
    if (fork() == 0) {
      for (int i = 0; i < 100; ++i)
        if (!file.keep({"bf16", std::to_string(writer), "a library"}, {1e9 * i, "today", false}).empty()) _exit(1);
      _exit(0);
    }
  int missed = 0, left = 4;
  for (int status = 0; left > 0; missed += !file.peak(two_cores))
    if (waitpid(-1, &status, WNOHANG) > 0) {
      --left;
      CHECK(status == 0);
    }
  CHECK(missed == 0);
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
}
