#include <fstream>

#include "experiments/watch/picture.hpp"
#include "src/base/guard/dump.hpp"
#include "tests/catch.hpp"
#include "tests/temporary.hpp"

using namespace chorale;
using namespace chorale::test;
namespace fs = std::filesystem;

namespace {

void append(const fs::path& path, const std::string& text) { std::ofstream(path, std::ios::app) << text; }

fs::path run_in(const fs::path& parent, const std::string& name, const std::string& text, int age_seconds) {
  fs::create_directories(parent / name);
  const fs::path path = parent / name / "metrics.jsonl";
  append(path, text);
  fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::seconds(age_seconds));
  return path;
}

watch::Metrics training(int steps, int of) {
  watch::Metrics metrics{.run_id = "a-run", .status = "running", .ranks = 2, .last_step = of};
  for (int i = 1; i <= steps; ++i)
    metrics.steps.push_back({.step = i,
                             .time = 0.5 * i,
                             .loss = 5.0 - 0.01 * i,
                             .step_time = 0.25,
                             .tokens_per_s = 1000,
                             .mfu = 0.4,
                             .comm_share = 0.2,
                             .bubble_share = 0.1,
                             .peak_bytes = 3 << 20});
  return metrics;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("a killed run has ended as its guards saw it, unless it has gone on since") {
  const TemporaryFolder folder;
  const fs::path path = run_in(folder.path(), "a", "{\"table\":\"/\",\"status\":\"running\"}\n", 60);
  SeenRank rank;
  put(rank.page.folder, path.parent_path().string());
  for (const auto& [lost, status] :
       {std::pair{explain_stop(rank), "stopped"}, std::pair{std::string("error: a"), "failed"}}) {
    write_dump({.host = "n0", .lost = lost, .ranks = {rank}}, rank);
    watch::MetricsFile file;
    CHECK(file.read(path));
    CHECK((file.metrics().status == status && file.metrics().killed));
  }
  fs::last_write_time(path, fs::file_time_type::clock::now() + std::chrono::seconds(60));
  watch::MetricsFile file;
  CHECK(file.read(path));
  CHECK_FALSE(file.metrics().ended());
}

TEST_CASE("metrics are read by whole lines, and invalid lines are skipped") {
  const TemporaryFolder folder;
  const fs::path path = folder / "metrics.jsonl";
  watch::MetricsFile file;
  CHECK_FALSE(file.read(path));
  append(path, "{\"table\":\"/\",\"run_id\":\"x\",\"status\":\"running\"}\n{\"table\":\"/\",\"train_iters\":9}\n");
  append(
      path,
      "not json\n[1]\n{\"table\": \"train\", \"step\": \"one\", \"loss\": null}\n{\"table\": \"train\", \"step\": 2, \"lo");
  CHECK(file.read(path));
  CHECK(file.metrics().last_step == 9);
  CHECK(file.metrics().steps.size() == 1);
  CHECK(std::isnan(file.metrics().steps[0].loss));
  append(path, "ss\": 1.5}\n");
  CHECK(file.read(path));
  REQUIRE(file.metrics().steps.size() == 2);
  CHECK(file.metrics().steps[1].loss == 1.5);
  CHECK_FALSE(file.metrics().ended());
  append(path, "{\"table\":\"/\",\"status\":\"stopped\"}\n");
  CHECK(file.read(path));
  CHECK(file.metrics().ended());
}

TEST_CASE("a replaced or truncated file is read as another run") {
  const TemporaryFolder folder;
  const fs::path path = folder / "metrics.jsonl";
  append(path, "{\"table\": \"train\", \"step\": 1, \"loss\": 2}\n{\"table\": \"train\", \"step\": 2, \"loss\": 2}\n");
  watch::MetricsFile file;
  REQUIRE(file.read(path));
  append(folder / "next",
         "{\"table\": \"train\", \"step\": 7, \"loss\": 2}\n{\"table\": \"train\", \"step\": 8, \"loss\": 2}\n\n\n");
  fs::rename(folder / "next", path);
  REQUIRE(file.read(path));
  CHECK(file.metrics().steps.front().step == 7);
  std::ofstream(path) << "{\"table\": \"train\", \"step\": 5, \"loss\": 2}\n";
  REQUIRE(file.read(path));
  CHECK(file.metrics().steps.size() == 1);
}

TEST_CASE("in a folder of several runs, the run written last is shown; the suite's file says whether all runs have ended") {
  const TemporaryFolder folder;
  CHECK(watch::find_metrics(folder).shown.empty());
  const fs::path own = run_in(folder, ".", "", 0);
  CHECK(watch::find_metrics(folder).shown == own.lexically_normal());
  CHECK(watch::find_metrics(folder).suite.empty());
  run_in(folder, "runs/1", "", 30);
  const fs::path newest = run_in(folder, "runs/2", "", 10);
  run_in(folder, "runs/3", "", 20);
  CHECK(watch::find_metrics(folder).shown == newest);
  CHECK(watch::find_metrics(folder).suite == own.lexically_normal());
  CHECK(watch::find_metrics(folder / "runs").suite.empty());
  CHECK(watch::find_metrics(newest).shown == newest);
}

TEST_CASE("a chart has its highest value at the top and its lowest at the bottom, and joins steep steps") {
  CHECK(watch::braille({3, 2, 1, 0}, 2, 1) == std::vector<std::string>{"⠑⢄"});
  CHECK(watch::braille({1, 1}, 1, 1) == std::vector<std::string>{"⠤"});
  CHECK(watch::braille({0, 9, 9, 9}, 2, 1) == std::vector<std::string>{"⡸⠉"});
  CHECK(watch::braille({NAN, NAN, 1, 1}, 2, 1) == std::vector<std::string>{"⠀⠤"});
  CHECK(watch::braille({5, 4, 1, 0}, 1, 2) == std::vector<std::string>{"⢢", "⠸"});
  CHECK(watch::braille({}, 2, 1) == std::vector<std::string>{"⠀⠀"});
}

TEST_CASE("a picture shows the progress of a run, its speed and the shares of its time") {
  const std::string text = picture(training(30, 100), {.columns = 120});
  CHECK(has(text, "a-run  2 ranks  running\nstep 30/100  30 %  15.0 s, 35.0 s to go\n"));  // from `time`: 0.5 s per step
  CHECK(has(text, "4.9900 ⠉"));
  CHECK(has(text, "4.7000 "));
  CHECK(has(text, "1000 tokens/s, MFU 40 %"));
  CHECK(has(text, "█▒▒▒▒▒▒░░░  computing 70 %, communication 20 %, bubble 10 %"));
  CHECK(has(text, "3.0 MiB on the fullest rank"));
  CHECK_FALSE(has(text, "nothing new"));
  CHECK(has(line(training(30, 100), {}), "step 30/100  30 %  15.0 s, 35.0 s to go  loss 4.7000  1000 tokens/s"));

  watch::Metrics ended = training(100, 100);
  ended.status = "ok";
  ended.evaluation = {100, 4.5};
  CHECK(has(picture(ended, {.silent_seconds = 1e6}), "step 100/100  100 %  50.0 s\n"));
  CHECK_FALSE(has(picture(ended, {.silent_seconds = 1e6}), "nothing new"));
  CHECK(has(picture(ended, {}), "held out 4.5000 after step 100"));
  CHECK(has(picture(watch::Metrics{}, {}), "a run  starting\nno training steps yet\n"));
  watch::Metrics proof;
  proof.take(R"({"table":"/","cmdline":"build/chorale prove --steps 2","status":"running"})");
  CHECK(has(picture(proof, {}), "running\n0 layouts compared with one rank\n"));
  proof.take(R"({"table":"proofs","case":0,"outcome":"equal"})");
  CHECK(has(picture(proof, {}), "running\n1 layout compared with one rank\n"));
}

TEST_CASE("a run that is silent for many steps is reported") {
  watch::Metrics metrics = training(30, 100);
  CHECK_FALSE(has(picture(metrics, {.silent_seconds = 9}), "nothing new"));
  CHECK(has(picture(metrics, {.silent_seconds = 11}), "nothing new for 11.0 s"));
  CHECK(has(picture(metrics, {.silent_seconds = 1e5, .columns = 80}), ": killed, or in a long step, evaluation or save\n"));
  for (train::TrainRow& step : metrics.steps) step.step_time = 60;
  CHECK_FALSE(has(line(metrics, {.silent_seconds = 500}), "nothing new"));
  CHECK(has(line(metrics, {.silent_seconds = 700}), "nothing new"));
}

TEST_CASE("no line of a picture is wider than the terminal, and control characters of the file are escaped") {
  watch::Metrics metrics = training(300, 1000);
  metrics.run_id = "\x1b[2J" + std::string(100, 'x');
  for (const int columns : {1, 20, 60, 300}) {
    const std::string text = picture(metrics, {.columns = columns});
    CHECK_FALSE(has(text, "\x1b"));
    int column = 0, widest = 0;
    for (const char c : text) {
      if (c == '\n') {
        widest = std::max(widest, column);
        column = 0;
      } else
        column += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
    }
    CHECK(widest < std::max(columns, 2));
  }
}
