// Tests that any damage to a checkpoint on disk is detected, and that an older checkpoint is loaded instead.
#include <fmt/format.h>

#include <sys/stat.h>

#include "parallel/state/checkpoint.hpp"
#include "parallel/state/stored_weights.hpp"
#include "src/base/crc32c.hpp"
#include "tests/catch.hpp"
#include "tests/files.hpp"
#include "tests/parallel/state/saved_state.hpp"
#include "tests/tally.hpp"
#include "tests/temporary.hpp"

namespace chorale::test {
namespace {

namespace fs = std::filesystem;

// Changes the body of a manifest and stores a valid checksum of the changed body.
void forge(const fs::path& manifest, const std::string& what, const std::string& by) {
  const std::string text = bytes_in(manifest);
  std::string body = text.substr(32, text.size() - 34);
  const std::size_t at = body.find(what);
  REQUIRE(at != std::string::npos);
  body.replace(at, what.size(), by);
  put_bytes(manifest,
            fmt::format("{{\"crc32c\":\"{:08x}\",\"manifest\":{}}}\n", crc32c(std::as_bytes(std::span(body))), body));
}

}  // namespace

TEST_CASE("if the newest set of files is damaged, the previous one is loaded; if both are damaged, the error says why") {
  const TemporaryFolder folder;
  for (const std::int64_t step : {10, 20}) save_step(folder, step);
  const fs::path newest = folder / "step-20", file = newest / "rank-0.safetensors", manifest = newest / "manifest.json";
  const std::string data = bytes_in(file), text = bytes_in(manifest);
  const auto expect_fallback = [&] {
    CHECK(step_loaded(folder) == 10);
    CHECK_THROWS_AS(step_loaded(newest), Error);
    put_bytes(file, data);
    put_bytes(manifest, text);
    CHECK(step_loaded(folder) == 20);
  };
  fs::remove(file);
  expect_fallback();
  fs::remove(manifest);
  CHECK(step_loaded(folder) == 10);
  put_bytes(manifest, text);
  put_bytes(file, data.substr(0, data.size() - 1));
  expect_fallback();
  put_bytes(file, data + "x");
  expect_fallback();
  put_bytes(file, "");
  expect_fallback();
  put_bytes(manifest, text.substr(0, 20));
  expect_fallback();
  fs::copy_file(folder / "step-10" / "rank-0.safetensors", file, fs::copy_options::overwrite_existing);
  expect_fallback();
  fs::rename(newest, folder / "elsewhere");  // now the link `latest` is dangling
  CHECK(step_loaded(folder) == 10);
  fs::rename(folder / "elsewhere", newest);
  fs::rename(file, folder / "away");
  fs::create_symlink("../away", file);
  CHECK_THROWS_WITH(step_loaded(newest), says("it is a link"));
  fs::rename(folder / "away", file);

  std::string flipped = data;
  flipped[data.size() - 300] ^= 4;
  put_bytes(file, flipped);
  CHECK_THROWS_WITH(step_loaded(newest), says(file.string()) && says("tensor \"") && says("of rank 0 is wrong"));
  put_bytes(folder / "step-10" / "manifest.json", "");
  CHECK_THROWS_WITH(step_loaded(folder), says("all 2 checkpoints are damaged") && says("of rank 0"));

  // The model's shape can be read from any readable manifest. A FIFO in place of a file also counts as damage.
  CHECK(shape_of_checkpoint(folder.path()).layers > 0);
  fs::remove(file);
  REQUIRE(mkfifo(file.c_str(), 0600) == 0);
  CHECK_THROWS_WITH(step_loaded(newest), says("rank-0.safetensors: not a regular file"));
  fs::remove(manifest);
  REQUIRE(mkfifo(manifest.c_str(), 0600) == 0);
  CHECK_THROWS_WITH(shape_stored_in(newest), says("the checkpoint is damaged") && says("not a regular file"));
  CHECK_THROWS_WITH(shape_of_checkpoint(folder.path()), says("all 2 checkpoints are damaged") && says("manifest.json: "));
}

TEST_CASE("every flipped bit of a checkpoint is detected") {
  const TemporaryFolder folder;
  save_step(folder, 1);
  const fs::path set = folder / "step-1";
  std::mt19937 chance(3);
  Tally tally;
  for (const char* name : {"rank-0.safetensors", "manifest.json"}) {
    const std::string good = bytes_in(set / name);
    for (int round = 0; round < 3000; ++round) {
      std::string bad = good;
      bad[std::uniform_int_distribution<std::size_t>(0, bad.size() - 1)(chance)] ^= static_cast<char>(1 << chance() % 8);
      put_bytes(set / name, bad);
      try {
        step_loaded(folder);
        tally.add(false);
      } catch (const Error&) {
        tally.add(true);
      }
    }
    put_bytes(set / name, good);
  }
  CHECK(tally.tried == 6000);
  CHECK(tally.failed == 0);
  CHECK(step_loaded(folder) == 1);
}

TEST_CASE("a manifest with a false entry is refused even if its checksum is right") {
  const TemporaryFolder folder;
  const fs::path manifest = folder / "step-1" / "manifest.json";
  const auto lie = [&](const std::string& what, const std::string& by) -> std::string {
    fs::remove_all(folder / "step-1");
    save_step(folder, 1);
    forge(manifest, what, by);
    try {
      step_loaded(folder / "step-1");
    } catch (const Error& error) {
      return error.what();
    }
    return "nothing";
  };
  CHECK(lie("chorale", "chorale") == "nothing");
  CHECK_THAT(lie("chorale checkpoint", "passacaglia"), says("not a checkpoint's manifest"));
  CHECK_THAT(lie("\"version\":1", "\"version\":2"),
             says("the checkpoint has a newer format") && says("version 2, this program reads up to 1"));
  CHECK_THAT(lie("\"rank\":0", "\"rank\":7"), says("file of rank 7, but the number of files is 1"));
  CHECK_THAT(lie("\"rank\":0", "\"rank\":-1"), says("file of rank -1"));
  CHECK_THAT(lie("\"shape\":[31,4]", "\"shape\":[-31,-4]"), says("manifest.json"));
  CHECK_THAT(lie("\"shape\":[31,4]", "\"shape\":[9223372036854775807,4]"), says("more than 2^63"));
  CHECK_THAT(lie("\"shape\":[31,4]", "\"shape\":[30,4]"), says("manifest.json"));
  CHECK_THAT(lie("\"dtype\":\"f16\"", "\"dtype\":\"f32\""), says("does not match the manifest"));
  CHECK_THAT(lie("\"dtype\":\"f16\"", "\"dtype\":\"f17\""), says("manifest.json"));
  CHECK_THAT(lie("norm.gain", "norm/gain"), says("does not match the manifest"));
  CHECK_THAT(lie("\"step\":1", "\"step\":\"one\""), says("manifest.json"));
  CHECK_THAT(lie("\"parts\":[", "\"parts\":[[],"), says("manifest.json"));
}

}  // namespace chorale::test
