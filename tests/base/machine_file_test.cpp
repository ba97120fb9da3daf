#include "src/base/machine_file.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "src/base/error.hpp"
#include "src/base/host.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"
#include "tests/temporary.hpp"
#include "tests/text.hpp"

using namespace chorale;

namespace {

const PeakKey two_cores{"f32", "2 cores", "a library"};

void write(const std::filesystem::path& file, const std::string& text) { std::ofstream(file) << text; }

Machine example() {
  Machine machine{.signature = "AMD \"EPYC\" 9, 2 cores", .cores = 2};
  machine.peaks = {{two_cores, {4.5e11, "2026-11-22T05:40:01Z", true}}};
  machine.sums = {{"f32", 6.5e10, 0.01, "2026-11-22T05:40:01Z"}};
  Level host{.backend = "ucx",
             .ranks = 4,
             .hosts = 2,
             .shared_cores = true,
             .measured = "today",
             .staged_bytes = 2048,
             .rows = 12,
             .error = 0.125};
  host.prices = {{"latency", {1.5e-7}}, {"cross", {1e10, 2e10, 3e10, 4e10, 5e9}}, {"eager_bytes", {8192}}};
  host.spread = {{"latency", {0.25}}};
  Level network = host;
  network.span = "network";
  network.staged_bytes = -1;
  network.prices["link"] = {1.25e8};
  machine.levels = {host, network};
  return machine;
}

}  // namespace

TEST_CASE("a measured peak is kept for its type, processor and library until a newer one replaces it") {
  const test::TemporaryFolder folder;
  const MachineFile file(folder / "cache/deep/machine-vm.toml");  // keep() creates the folders
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

TEST_CASE("a machine file is the same after writing and reading it") {
  const Machine machine = example(), back = parse_machine(to_toml(machine), "m.toml");
  CHECK((back.signature == machine.signature && back.cores == 2));
  REQUIRE((back.peaks.size() == 1 && back.sums.size() == 1 && back.levels.size() == 2));
  CHECK((back.peaks[0].first == two_cores && back.peaks[0].second.flops == 4.5e11 && back.peaks[0].second.busy));
  CHECK((back.sums[0].rate == 6.5e10 && back.sums[0].spread == 0.01));
  for (std::size_t i = 0; i < 2; ++i) {
    const Level &a = machine.levels[i], &b = back.levels[i];
    CHECK((a.backend == b.backend && a.span == b.span && a.ranks == b.ranks && a.hosts == b.hosts));
    CHECK((a.shared_cores == b.shared_cores && a.rows == b.rows && a.error == b.error && a.measured == b.measured));
    CHECK(a.staged_bytes == b.staged_bytes);
    CHECK((a.prices == b.prices && a.spread == b.spread));
  }
  CHECK(to_toml(back) == to_toml(machine));
}

TEST_CASE("the origin of a prediction names the file and its calibration") {
  Machine machine = parse_machine(to_toml(example()), "some/folder/m.toml");
  CHECK(origin_of(machine, machine.levels[0]) == "m.toml, calibrated today with 4 ranks, median error 13 %");
  machine.levels[0].busy = true;
  machine.levels[0].measured = "2026-11-22T05:40:01Z";
  CHECK(origin_of(machine, machine.levels[0]) ==
        "m.toml, calibrated 2026-11-22 with 4 ranks beside other programs, median error 13 %");
  const ComputeRates rates{.type = "bf16", .ranks = 1, .error = 0.02};
  CHECK(origin_of(Machine{}, rates) == "the machine file, calibrated at an unknown time with 1 rank, largest error 2 %");
}

TEST_CASE("a wrong machine file is refused in three lines that name the line and the key") {
  const std::string good = to_toml(example());
  const auto refusal = [&](const std::string& text) {
    try {
      parse_machine(text, "m.toml");
    } catch (const Error& error) {
      return describe(error, 0, 1);
    }
    return std::string("accepted");
  };
  CHECK(refusal(good) == "accepted");
  const auto line_of = [&](const std::string& words) {
    return fmt::format("m.toml:{}:", 1 + std::count(good.begin(), good.begin() + static_cast<long>(good.find(words)), '\n'));
  };
  const struct {
    std::string from, to, says;
  } mistakes[] = {
      {"schema = \"chorale machine\"", "schema = \"a suite\"", "schema is not \"chorale machine\""},
      {"version = 1", "version = 7", "version is 7, but this program reads version 1"},
      {"cores = 2\n", "cores = \"two\"\n", "cores is not a number"},
      {"flops = 450000000000", "flops = 0", "[[peak]] flops is 0, but must be from 1"},
      {"busy = true", "busy = 1", "[[peak]] busy is neither true nor false"},
      {"rate = 6.5e+10", "rate = -3", "[[sum]] rate is -3"},
      {"span = \"host\"", "span = \"rack\"", "[[level]] span is \"rack\", but must be host or network"},
      {"latency = 1.5e-07", "latency = nan", "[[level]] latency is nan"},
      {"cross = [1e+10, 2e+10, 3e+10, 4e+10, 5e+09]", "cross = [1e+10, 2e+10]",
       "[[level]] cross is not a list of 5 numbers"},
      {"cross = [1e+10,", "cross = [0,", "[[level]] cross is 0, but must be from 1"},
      {"eager_bytes = 8192", "eager_byte = 8192", "[[level]] eager_byte is no key of a machine file"},
      {"[level.spread]\nlatency = 0.25", "[level.spread]\nlatency = \"small\"", "[[level]] spread.latency is not a number"},
      {"backend = \"ucx\"\n", "backend = ucx\n", ""},
  };
  for (const auto& [from, to, says] : mistakes) {
    const std::string said = refusal(test::replaced(good, from, to));
    INFO(from << " → " << to << "\n" << said);
    CHECK(said.find(says) != std::string::npos);
    const bool is_second_line = from.starts_with("[level.spread]");
    CHECK(said.find(line_of(is_second_line ? "latency = 0.25" : from)) != std::string::npos);
    CHECK(std::count(said.begin(), said.end(), '\n') == 3);
  }
  const std::string missing = refusal(test::replaced(good, "link = 125000000  # B/s\n", ""));
  CHECK(missing.find("[[level]] link is missing from the table that begins here") != std::string::npos);
}

TEST_CASE("a damaged file, or one of another machine, has no peaks and stays as it is") {
  const test::TemporaryFolder folder;
  const auto path = folder / "machine.toml";
  const MachineFile file(path);
  REQUIRE(file.keep(two_cores, {1e9, "today", false}).empty());
  const std::string good = test::bytes_in(path);
  const auto with = [&](const std::string& from, const std::string& to) { return test::replaced(good, from, to); };
  for (const std::string& bad :
       {std::string(), std::string("{"), std::string("[1, 2]"), good.substr(0, good.size() / 2),
        std::string(R"({"schema":"chorale machine","version":1,"peaks":[]})"), with("chorale machine", "x"),
        with("version = 1", "version = 2"), with(machine_signature(), "another machine"), with("[[peak]]", "[[beak]]"),
        with("flops = 1000000000", "flops = \"fast\""), with("flops = 1000000000", "flops = -1"), with("false", "0"),
        with("\"today\"", "1")}) {
    write(path, bad);
    INFO(bad);
    CHECK(!file.peak(two_cores));
    CHECK_THROWS_AS(file.keep(two_cores, {2e9, "later", false}), Error);
    CHECK(test::bytes_in(path) == bad);
  }
  write(path, with(machine_signature(), "an abacus"));
  CHECK_THROWS_WITH(own_machine(path),
                    says("the machine file belongs to another machine\n  " + path.string() + ": an abacus"));
  std::filesystem::remove(path);
  CHECK(file.keep(two_cores, {2e9, "later", false}).empty());
  CHECK(file.peak(two_cores)->flops == 2e9);
}

TEST_CASE("a new peak leaves the prices in the machine file as they are") {
  const test::TemporaryFolder folder;
  const auto path = folder / "machine.toml";
  Machine machine = example();
  machine.signature = machine_signature();
  write(path, to_toml(machine));
  CHECK(MachineFile(path).keep({"bf16", "2 cores", "a library"}, {1e9, "today", false}).empty());
  const Machine back = read_machine(path);
  CHECK((back.peaks.size() == 2 && back.levels.size() == 2 && back.levels[1].prices == machine.levels[1].prices));
}

TEST_CASE("if the file cannot be written, keep() says why and nothing else fails") {
  const MachineFile nowhere("/proc/none/machine.toml");
  CHECK(!nowhere.keep(two_cores, {1e9, "today", false}).empty());
  CHECK(!nowhere.peak(two_cores));
  CHECK(MachineFile("").keep(two_cores, {1e9, "today", false}) == "neither XDG_CACHE_HOME nor HOME is set");
}

TEST_CASE("programs that write at the same time leave one complete file") {
  const test::TemporaryFolder folder;
  const MachineFile file(folder / "machine.toml");
  REQUIRE(file.keep(two_cores, {1e9, "today", false}).empty());
  for (int writer = 1; writer <= 4; ++writer)
    if (fork() == 0) {
      for (int i = 1; i <= 100; ++i)
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
