#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "src/base/error.hpp"
#include "src/record/reader.hpp"
#include "src/record/recorder.hpp"
#include "src/record/run_folder.hpp"
#include "tests/catch.hpp"
#include "tests/record/rows.hpp"
#include "tests/temporary.hpp"

using namespace chorale;
using namespace chorale::test;
namespace fs = std::filesystem;

namespace {

const Variable& named(const std::vector<Variable>& all, const std::string& name) {
  for (const Variable& variable : all)
    if (variable.name == name) return variable;
  throw std::runtime_error("no variable " + name);
}

std::string text_of(const fs::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("records are read back, including tables with several dimensions and labels") {
  const TemporaryFolder folder;
  write_sample_record(folder);
  const Reader reader(folder / "run.h5");
  CHECK(reader.groups() == std::vector<std::string>{"/", "/config", "/ranks", "/train", "/phases", "/bench", "/empty"});

  const auto train = reader.variables("/train");
  CHECK(reader.rows("/train") == 120);
  CHECK(named(train, "step").cells.back() == "119");
  CHECK(std::stof(named(train, "loss").cells[7]) == loss_at(7));
  CHECK(named(train, "loss").dimensions == std::vector<std::string>{"step"});
  CHECK(named(train, "skipped").cells[3] == "yes");
  CHECK(named(reader.variables("/train", 5), "step").cells.front() == "115");

  const auto phases = reader.variables("/phases");
  const Variable time = named(phases, "phase_time");
  CHECK(time.dimensions == std::vector<std::string>{"step", "rank", "phase"});
  CHECK(time.shape == std::vector<std::int64_t>{4, 3, 2});
  CHECK(std::stof(time.cells[(2 * 3 + 1) * 2 + 1]) == 2.0f + 0.1f + 0.01f);
  CHECK(named(phases, "phase").cells == std::vector<std::string>{"forward", "backward"});

  const auto bench = reader.variables("/bench");
  CHECK(named(bench, "sample").cells == std::vector<std::string>{"0", "1", "2"});  // the table numbers the rows
  CHECK(named(bench, "op").cells[2] == "all_gather");
  CHECK(named(bench, "note").cells == std::vector<std::string>{"Größe ", "", "Größe xx"});
  CHECK(named(reader.variables("/ranks"), "host").cells == std::vector<std::string>{"north", "søuth", ""});
  CHECK(named(reader.variables("/config"), "toml").cells[0] == "ranks = 3\n");
}

TEST_CASE("a live table's rows reach metrics.jsonl at once, between the root's attributes") {
  const TemporaryFolder folder;
  VirtualClock clock;
  Recorder recorder(folder, {{"user", "a \"b\""}}, clock);
  recorder.number("jobsize", 3);
  Table& train = recorder.table<TrainRow>({.group = "train", .rows = "step", .live = true});
  recorder.append(train, TrainRow{5, 1.5, NAN, 1});
  const std::string running =
      "{\"table\":\"/\",\"user\":\"a \\\"b\\\"\",\"status\":\"running\"}\n"
      "{\"table\":\"/\",\"jobsize\":3}\n"
      "{\"table\": \"train\", \"step\": 5, \"time\": 1.5, \"loss\": null, \"skipped\": \"yes\"}\n";
  CHECK(text_of(folder / "metrics.jsonl") == running);
  recorder.finish("ok");
  CHECK(text_of(folder / "metrics.jsonl") == running + "{\"table\":\"/\",\"status\":\"ok\"}\n");
}

TEST_CASE("texts of rows from several flushes stay in their rows") {
  const TemporaryFolder folder;
  VirtualClock clock;
  Recorder recorder(folder, {}, clock);
  Table& bench = recorder.table<BenchRow>({.group = "bench", .rows = "sample", .live = true});
  for (const char* note : {"one", "two", "\"three\"\n"}) {
    recorder.append(bench, BenchRow{0, 8, 3, 1, note});
    recorder.flush();
  }
  CHECK(text_of(folder / "metrics.jsonl").find(R"("note": "\"three\"\n")") != std::string::npos);
  recorder.finish("ok");
  CHECK(named(Reader(folder / "run.h5").variables("/bench"), "note").cells ==
        std::vector<std::string>{"one", "two", "\"three\"\n"});
}

TEST_CASE("a flush is due after 50 steps, 10 seconds or a long step") {
  VirtualClock clock;
  const TemporaryFolder folder;
  Recorder recorder(folder, {}, clock);
  CHECK_FALSE(recorder.due(49));
  CHECK(recorder.due(50));
  recorder.flush();
  CHECK_FALSE(recorder.due(99));
  for (int step = 51; step < 64; ++step) {
    clock.sleep(0.8);
    CHECK(recorder.due(step) == (step == 63));  // a flush is due after 13 steps of 0.8 s each
  }
  recorder.flush();
  clock.sleep(1);
  CHECK(recorder.due(64));
}

TEST_CASE("readers see only flushed rows; an unfinished record is marked") {
  const TemporaryFolder folder;
  VirtualClock clock;
  {
    Recorder recorder(folder, {}, clock);
    Table& train = recorder.table<TrainRow>({.group = "train", .rows = "step"});
    for (std::int64_t i = 0; i < 10; ++i) recorder.append(train, train_row(i));
    CHECK_FALSE(fs::exists(folder / "run.h5"));
    recorder.flush();
    for (std::int64_t i = 10; i < 15; ++i) recorder.append(train, train_row(i));
    train.write();  // the rows go to the file image in memory, not yet to the published file
    CHECK(Reader(folder / "run.h5").rows("/train") == 10);
    CHECK(named(Reader(folder / "run.h5").variables("/train"), "step").cells.size() == 10);
  }
  const Reader reader(folder / "run.h5");  // the destructor has flushed the remaining rows
  CHECK(reader.rows("/train") == 15);
  const auto facts = reader.attributes();
  CHECK(std::count(facts.begin(), facts.end(), std::pair<std::string, std::string>{"status", "failed"}) == 1);
  CHECK(std::distance(fs::directory_iterator(folder.path()), {}) == 2);  // run.h5 and metrics.jsonl, but no spare copy
}

TEST_CASE("rows beyond the committed ones are left out") {
  const TemporaryFolder folder;
  write_sample_record(folder);
  {
    const h5::File file(H5Fopen((folder / "run.h5").c_str(), H5F_ACC_RDWR, H5P_DEFAULT));
    const h5::Group train(H5Gopen2(file.get(), "train", H5P_DEFAULT));
    h5::set_attribute(train.get(), "committed_rows", std::int64_t{7});
  }
  const Reader reader(folder / "run.h5");
  CHECK(reader.rows("/train") == 7);
  CHECK(named(reader.variables("/train"), "step").cells.back() == "6");
}

TEST_CASE("a row that does not fit its table is refused") {
  VirtualClock clock;
  const TemporaryFolder folder;
  Recorder recorder(folder, {}, clock);
  Table& train = recorder.table<TrainRow>({.group = "train", .rows = "step"});
  recorder.append(train, train_row(0));
  CHECK_THROWS(recorder.append(train, BenchRow{}));
  struct Almost {  // the first two columns equal those of TrainRow
    std::int64_t step = 77;
    double time = 77, loss = 77;
    std::uint8_t skipped = 0;
    static auto columns() {
      return std::tuple{column("step", &Almost::step, "", ""), column("time", &Almost::time, "", ""),
                        column("loss", &Almost::loss, "", ""), column("skipped", &Almost::skipped, "", "")};
    }
  };
  CHECK_THROWS(recorder.append(train, Almost{}));
  recorder.append(train, train_row(1));
  recorder.flush();
  const auto kept = Reader(recorder.file()).variables("/train");
  CHECK(named(kept, "step").cells == std::vector<std::string>{"0", "1"});
  CHECK(named(kept, "time").cells == std::vector<std::string>{"0", "0.25"});
  CHECK_THROWS(recorder.table<TrainRow>({.group = "train", .rows = "step"}));   // the group exists already
  CHECK_THROWS(recorder.table<PhaseRow>({.group = "phases", .rows = "step"}));  // there is no dimension named rank
  recorder.dimension({.name = "rank", .size = 3});
  Table& phases = recorder.table<PhaseRow>(
      {.group = "more", .rows = "step", .dimensions = {{.name = "phase", .labels = {"forward", "backward"}}}});
  CHECK_THROWS_WITH(recorder.append(phases, PhaseRow{0, {1, 2, 3}}), says("has 24 bytes, not 12"));
  CHECK_THROWS(recorder.dimension({.name = "bad", .labels = {"two words"}}));
}

TEST_CASE("foreign and damaged files are refused with a reason") {
  const TemporaryFolder folder;
  write_sample_record(folder);
  const auto refused = [](const fs::path& path) -> std::string {
    try {
      Reader reader(path);
    } catch (const Error& error) {
      return error.exit() == Exit::usage ? error.what() : std::string("not a usage error: ") + error.what();
    }
    return "accepted";
  };
  CHECK(refused(folder / "none.h5").find("no such file") != std::string::npos);
  CHECK(refused(folder).find("not a regular file") != std::string::npos);
  write_file(folder / "text.h5", "hello");
  CHECK(refused(folder / "text.h5").find("not an HDF5 file") != std::string::npos);
  fs::copy_file(folder / "run.h5", folder / "short.h5");
  fs::resize_file(folder / "short.h5", 3000);
  CHECK(refused(folder / "short.h5").find("truncated") != std::string::npos);

  const auto with_attribute = [&](const char* name, auto change) {
    h5::File file(H5Fcreate((folder / name).c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
    change(file.get());
  };
  with_attribute("other.h5", [](hid_t) {});
  CHECK(refused(folder / "other.h5").find("it was not written by chorale") != std::string::npos);
  with_attribute("newer.h5", [](hid_t file) {
    h5::set_attribute(file, "schema", schema_name);
    h5::set_attribute(file, "schema_version", schema_version + 1);
  });
  CHECK(refused(folder / "newer.h5").find("its schema version is 2") != std::string::npos);
}

TEST_CASE("a record with links to other files or with cycles does no harm") {
  const TemporaryFolder folder;
  const auto file = [&](const char* name) {
    h5::File made(H5Fcreate((folder / name).c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
    h5::set_attribute(made.get(), "schema", schema_name);
    return made;
  };
  {
    const auto circle = file("circle.h5");
    const auto group = h5::make_group(circle.get(), "a/b");
    h5::write_text(group.get(), "text", "inside");
    for (const char* name : {"x", "y", "z"}) H5Lcreate_hard(circle.get(), "a", group.get(), name, H5P_DEFAULT, H5P_DEFAULT);
  }
  CHECK(Reader(folder / "circle.h5").groups() == std::vector<std::string>{"/a/b"});
  {
    const auto outside = file("outside.h5");
    const h5::Properties properties(H5Pcreate(H5P_DATASET_CREATE));
    H5Pset_external(properties.get(), "/etc/hostname", 0, 4);
    const hsize_t four = 4;
    const h5::Space space(H5Screate_simple(1, &four, nullptr));
    const auto group = h5::make_group(outside.get(), "g");
    h5::Dataset(
        H5Dcreate2(group.get(), "secret", H5T_NATIVE_UINT8, space.get(), H5P_DEFAULT, properties.get(), H5P_DEFAULT));
  }
  CHECK_THROWS_WITH(Reader(folder / "outside.h5").variables("/g"), says("refers to other files"));
}

TEST_CASE("a flipped bit in the data is detected") {
  const TemporaryFolder folder;
  write_sample_record(folder);
  std::string bytes = text_of(folder / "run.h5");
  float value = loss_at(7);
  const std::string pattern(reinterpret_cast<char*>(&value), sizeof value);
  const std::size_t at = bytes.find(pattern);
  REQUIRE(at != std::string::npos);
  bytes[at] = static_cast<char>(bytes[at] ^ 4);
  std::ofstream(folder / "run.h5", std::ios::binary) << bytes;
  CHECK_THROWS_WITH(Reader(folder / "run.h5").variables("/train"), says("HDF5 call failed"));
}

TEST_CASE("a full disk is an error at the flush, not a silent loss") {
  const TemporaryFolder folder;
  SystemClock clock;
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  {
    Recorder recorder(folder, {}, clock);
    Table& train = recorder.table<TrainRow>({.group = "train", .rows = "step"});
    recorder.flush();
    const rlimit tight{30'000, before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &tight);
    for (std::int64_t i = 0; i < 20'000; ++i) recorder.append(train, train_row(i));
    CHECK_THROWS(recorder.flush());
    CHECK(Reader(folder / "run.h5").rows("/train") == 0);  // the published record is intact
    setrlimit(RLIMIT_FSIZE, &before);
    CHECK_NOTHROW(recorder.flush());  // the rows stayed in memory, and now the disk has space
    CHECK_NOTHROW(recorder.finish("ok"));
  }
  std::signal(SIGXFSZ, old_handler);
  CHECK(Reader(folder / "run.h5").rows("/train") == 20'000);
}

TEST_CASE("run folders are never overwritten, and `latest` is the newest") {
  const TemporaryFolder folder;
  const fs::path parent = folder / "deep" / "er";
  require_writable(parent);
  CHECK_FALSE(fs::exists(folder / "deep"));
  VirtualClock clock;  // the clock stands still, so all folder names have the same time
  std::vector<fs::path> folders;
  for (int i = 0; i < 5; ++i) folders.push_back(make_run_folder(parent, "train", clock));
  std::sort(folders.begin(), folders.end());
  CHECK(std::unique(folders.begin(), folders.end()) == folders.end());
  const fs::path newest = make_run_folder(parent, "bench", clock);
  CHECK(fs::equivalent(parent / "latest", newest));
  CHECK(fs::is_directory(newest / "log"));
  CHECK(newest.filename().string().find("1970-01-01T00-00-00-bench-") == 0);
  CHECK_THROWS_WITH(require_writable("/proc/none"), says("/proc/none"));
}

TEST_CASE("how fast rows are recorded", "[!benchmark]") {
  SystemClock clock;
  const TemporaryFolder folder;
  Recorder recorder(folder, {}, clock);
  Table& train = recorder.table<TrainRow>({.group = "train", .rows = "step"});
  BENCHMARK("append 1000 rows") {
    for (std::int64_t i = 0; i < 1000; ++i) recorder.append(train, train_row(i));
  };
  BENCHMARK("append 1000 rows and flush them to disk") {
    for (std::int64_t i = 0; i < 1000; ++i) recorder.append(train, train_row(i));
    recorder.flush();
  };
}
